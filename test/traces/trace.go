package traces

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// trace is the text of all steps. What happens at one moment is sorted by its text.
func (s *Story) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	requests, size := 0, 0
	for i, step := range s.steps {
		lines := append(s.calls(i), step.lines...)
		ofStep, sent := 0, 0
		for _, l := range lines {
			if l.rank == rankOperator {
				ofStep, sent = ofStep+1, sent+len(l.body)
			}
			path := ""
			if l.request != nil && l.request.Method == http.MethodGet {
				path = l.request.URL.Path
			}
			l.text = s.identities.normal(l.String(), path, step.startedAt)
		}
		slices.SortStableFunc(lines, func(a, b *line) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text))
		})
		fmt.Fprintf(&text, "\n## %s (requests: %d, bytes: %d)\n", step.title, ofStep, sent)
		for _, l := range lines {
			fmt.Fprintf(&text, "%s  %s\n", offset(l.at, step.startedAt),
				strings.ReplaceAll(l.text, "\n", "\n         "))
		}
		requests, size = requests+ofStep, size+sent
	}
	return fmt.Sprintf("# requests: %d, bytes: %d\n", requests, size) + text.String()
}

// calls are those of handlers that began in the step.
func (s *Story) calls(of int) (lines []*line) {
	for _, r := range s.runners {
		for _, c := range r.Calls() {
			if c.Began.Before(s.steps[of].startedAt) || of+1 < len(s.steps) &&
				!c.Began.Before(s.steps[of+1].startedAt) {
				continue
			}
			lines = append(lines, &line{at: c.Began, rank: rankHandlerCall, text: "call " + c.String()})
		}
	}
	return lines
}

// String is the text, or the request with its body as YAML.
func (l *line) String() string {
	if l.request == nil {
		return l.text
	}
	text := l.request.Method + " " + l.request.URL.Path
	if l.rank == rankUser {
		text = "user " + text
	}
	if query, _ := url.QueryUnescape(l.request.URL.Query().Encode()); query != "" {
		text += "?" + query
	}
	text += fmt.Sprintf(" → %d", l.code)
	if l.version != "" && l.request.Method != http.MethodGet {
		text += ", resourceVersion=" + l.version
	}
	if len(l.body) == 0 {
		return text
	}
	body, err := yaml.JSONToYAML(l.body)
	if err != nil {
		body = l.body
	}
	return text + "\n" + l.request.Header.Get("Content-Type") + "\n" + strings.TrimRight(string(body), "\n")
}

// identities are the identities of all objects in answers. They give uids and resourceVersions the names in the trace.
type identities struct {
	names    map[string]string   // of objects, by uid; of lists, by path and resourceVersion
	versions map[string][]string // of objects, by uid
}

// answer is an object, a list, or a status.
type answer struct {
	Kind     string
	Metadata struct{ Namespace, Name, UID, ResourceVersion string }
	Items    []answer
}

// add returns the resourceVersion of the object or list in the answer.
func (o identities) add(path string, body []byte) string {
	var got answer
	_ = json.Unmarshal(body, &got) // that of discovery is none of these
	for _, one := range append(got.Items, got) {
		if of := one.Metadata; of.UID != "" && !slices.Contains(o.versions[of.UID], of.ResourceVersion) {
			o.names[of.UID] = one.Kind + " " + strings.TrimPrefix(of.Namespace+"/"+of.Name, "/")
			o.versions[of.UID] = append(o.versions[of.UID], of.ResourceVersion)
		}
	}
	if got.Metadata.UID == "" {
		o.names[path+got.Metadata.ResourceVersion] = "<that of the list>"
	}
	return got.Metadata.ResourceVersion
}

// version is the name of a resourceVersion: "Widget default/one v2" is the second known version of an object.
func (o identities) version(path, text string) string {
	if name := o.names[path+text]; name != "" {
		return name
	}
	for uid, versions := range o.versions {
		slices.Sort(versions) // as the server in memory begins with 100
		if i := slices.Index(versions, text); i >= 0 {
			return fmt.Sprintf("<%s v%d>", o.names[uid], i+1)
		}
	}
	return "<another one>"
}

var (
	processes = regexp.MustCompile(`[\w.-]+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`) // host and uuid
	uids      = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	versions  = regexp.MustCompile(`(resourceVersion"?[:=] ?"?|/metadata/resourceVersion\n +value: ")([1-9]\d*)`)
	limits    = regexp.MustCompile(`(timeout|timeoutSeconds)=\w+`)
)

// normal names uids and versions, and shows times as those since the beginning of the step.
func (o identities) normal(text, path string, began time.Time) string {
	text = uids.ReplaceAllStringFunc(text, func(uid string) string { return "<uid of " + o.names[uid] + ">" })
	text = times.ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return offset(at, began)
	})
	text = versions.ReplaceAllStringFunc(text, func(found string) string {
		parts := versions.FindStringSubmatch(found)
		return parts[1] + o.version(path, parts[2])
	})
	return limits.ReplaceAllString(text, "$1=<by chance>")
}

func offset(at, from time.Time) string { return fmt.Sprintf("%+.3fs", at.Sub(from).Seconds()) }
