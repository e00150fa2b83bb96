package manifests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// auditEvent is a line of an audit log of Kubernetes: the fields that permissions depend on.
type auditEvent struct {
	Kind, APIVersion, Verb, UserAgent string
	ObjectRef                         *recordedObject
}

// recordedObject is the object or the resource of a request.
type recordedObject struct{ APIGroup, Resource, Subresource, Namespace, Name string }

// rbacResource is the resource as in rules.
func (o recordedObject) rbacResource() string {
	if o.Subresource == "" {
		return o.Resource
	}
	return o.Resource + "/" + o.Subresource
}

// ProposeRules compares the requests of an operator in a recording with its needs, and returns lines for the user: a
// call of Needs with the missing rules, or that nothing is missing. The recording is a file of audit events.
func ProposeRules(path string, o ManifestInput) (lines []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	events, err := readRecording(file, path, o.Name)
	if err != nil {
		return nil, err
	}
	rules := missingRules(events, o.Needs, o.Namespaces)
	if len(rules) == 0 {
		return []string{fmt.Sprintf("%s: the permissions cover all recorded requests.", path)}, nil
	}
	lines = []string{
		path + " has requests that the permissions do not cover. Add those that are meant to the program:",
		"", "\top.Needs(",
	}
	for _, rule := range rules {
		lines = append(lines, "\t\t"+goRule(rule.PolicyRule)+",")
		if len(rule.elsewhere) > 0 {
			lines = append(lines, "\t\t// The operator does not serve these namespaces: make a Role in each: "+
				strings.Join(sets.List(rule.elsewhere), ", "))
		}
	}
	return append(lines, "\t)", ""), nil
}

// readRecording returns the events of the operator: all its clients have its name in the user agent. An invalid line is
// an error with its number, as is a recording without requests of the operator.
func readRecording(from io.Reader, path, operator string) (events []auditEvent, err error) {
	lines, total := bufio.NewReader(from), 0
	for number := 1; ; number++ {
		line, readErr := lines.ReadBytes('\n') // lines with bodies can be long
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return nil, fmt.Errorf("%s: %w", path, readErr)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var event auditEvent
			if err := json.Unmarshal(line, &event); err != nil {
				return nil, fmt.Errorf("%s:%d: it is not an audit event in JSON: %w", path, number, err)
			}
			if event.Kind != "Event" || !strings.HasPrefix(event.APIVersion, "audit.k8s.io/") || event.Verb == "" {
				return nil, fmt.Errorf("%s:%d: it is not an audit event with a verb, but %q of %q", path, number,
					event.Kind, event.APIVersion)
			}
			if total++; slices.Contains(strings.Split(event.UserAgent, "/"), operator) {
				events = append(events, event)
			}
		}
		if readErr != nil {
			break
		}
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("%s: none of the %d requests has a user agent with the name of the operator, %q", path,
			total, operator)
	}
	return events, nil
}

// missingRule is a rule, and namespaces of its requests that the operator does not serve.
type missingRule struct {
	rbacv1.PolicyRule

	elsewhere sets.Set[string]
}

// missingRules returns the rules of requests that no need covers, one for each resource.
func missingRules(events []auditEvent, needs []clusterneeds.Need, served namespaces.Patterns) (all []missingRule) {
	for _, event := range events {
		if event.ObjectRef == nil || isGrantedToAll(*event.ObjectRef) || isCovered(event, needs, served) {
			continue
		}
		o := *event.ObjectRef
		at := slices.IndexFunc(all, func(one missingRule) bool {
			return one.APIGroups[0] == o.APIGroup && one.Resources[0] == o.rbacResource()
		})
		if at < 0 {
			at = len(all)
			all = append(all, missingRule{rbacv1.PolicyRule{
				APIGroups: []string{o.APIGroup}, Resources: []string{o.rbacResource()},
			}, sets.New[string]()})
		}
		all[at].Verbs = sortVerbs(append(all[at].Verbs, event.Verb))
		if o.Namespace != "" && len(served) > 0 && !served.MatchesName(o.Namespace) {
			all[at].elsewhere.Insert(o.Namespace)
		}
	}
	return all
}

// isGrantedToAll reports whether Kubernetes grants requests for the resource to every user, such as SelfSubjectReviews.
func isGrantedToAll(o recordedObject) bool {
	return strings.HasPrefix(o.Resource, "selfsubject") &&
		(o.APIGroup == "authorization.k8s.io" || o.APIGroup == "authentication.k8s.io")
}

// isCovered reports whether a need covers the request. The namespace of the operator's pods is not known here, so a
// need in that namespace covers requests in any one.
func isCovered(event auditEvent, needs []clusterneeds.Need, served namespaces.Patterns) bool {
	const own = "\x00"
	o := *event.ObjectRef
	return slices.ContainsFunc(needs, func(need clusterneeds.Need) bool {
		granted := need.Namespaces(served, own)
		return need.Grants(event.Verb, o.APIGroup, o.rbacResource(), o.Name) &&
			(slices.Contains(granted, "") || slices.Contains(granted, own) || slices.Contains(granted, o.Namespace))
	})
}

// goRule returns a rule as Go code.
func goRule(rule rbacv1.PolicyRule) string {
	return fmt.Sprintf("rbacv1.PolicyRule{APIGroups: %#v, Resources: %#v, Verbs: %#v}", rule.APIGroups, rule.Resources,
		rule.Verbs)
}
