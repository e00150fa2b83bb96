package facadetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// present is later than what any bubble of testing/synctest gets to, where time begins with the year 2000.
var present = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// moment is when something of an operator has happened, as far as it is the same in each run.
type moment struct {
	known bool          // in virtual time
	since time.Duration // the operator was ready
}

// momentOf is that of a time, when the operator has begun its work at zero.
func momentOf(at, zero time.Time) moment {
	return moment{known: at.Before(present), since: max(0, at.Sub(zero).Round(time.Second))}
}

func (m moment) compare(other moment) int {
	if !m.known || !other.known {
		return 0
	}
	return cmp.Compare(m.since, other.since)
}

// line is a text at its time.
func (m moment) line(text string) string {
	margin := 0
	if m.known {
		margin = 10
		text = fmt.Sprintf("%-*s%s", margin, m.since.String()+" ", text)
	}
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+strings.Repeat(" ", margin)) + "\n"
}

// calls has one line for each call.
func (p page) calls(calls []HandlerCall) string {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b HandlerCall) int {
		return cmp.Or(
			a.moment.compare(b.moment), cmp.Compare(a.stage(), b.stage()), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(p.names.Text(a.Name), p.names.Text(b.Name)),
			cmp.Compare(a.lane, b.lane),
		)
	})
	var text strings.Builder
	text.WriteString("# calls\n")
	for _, c := range calls {
		told := c.String()
		if took := c.Ended.Sub(c.Began).Round(time.Second); c.moment.known && took > 0 {
			told += fmt.Sprintf(" (took %s)", took)
		}
		text.WriteString(c.moment.line(p.names.Text(told)))
	}
	return text.String()
}

// stage puts first what an operator begins with, and last what it ends with.
func (c HandlerCall) stage() int {
	switch {
	case c.Kind == "" && (c.Reason == "startup" || c.Reason == "login"):
		return 0
	case c.Kind == "" && c.Reason == "cleanup":
		return 2
	default:
		return 1
	}
}

// object is the path of what is written, be it to its status.
func (w Write) object() string { return strings.TrimSuffix(w.Path, "/status") }

// writes has one line for each write, and what was sent below.
func (p page) writes(writes []Write) string {
	writes = slices.DeleteFunc(slices.Clone(writes), Write.ofItself)
	slices.SortStableFunc(writes, func(a, b Write) int {
		return cmp.Or(a.moment.compare(b.moment), cmp.Compare(p.names.Text(a.object()), p.names.Text(b.object())))
	})
	var text strings.Builder
	text.WriteString("# writes\n")
	for _, w := range writes {
		text.WriteString(w.moment.line(strings.TrimRight(p.names.Text(w.String())+"\n"+p.body(w.Body), "\n ")))
	}
	return text.String()
}

// body is what was sent, as YAML with a margin.
func (p page) body(sent []byte) string {
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(sent, &value); err != nil {
		return p.names.Text(string(sent))
	}
	switch v := value.(type) {
	case map[string]any:
		value = p.names.Object(v)
	case []any:
		for _, operation := range v {
			if one, ok := operation.(map[string]any); ok && one["path"] == "/metadata/resourceVersion" {
				one["value"] = "<resourceVersion>"
			}
		}
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return p.names.Text(string(sent))
	}
	return "  " + strings.ReplaceAll(p.names.Text(string(text)), "\n", "\n  ")
}
