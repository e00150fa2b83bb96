package clusterneeds

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// ruleOf makes a rule of a text: groups, resources, verbs and names, separated by spaces and commas; "core" is the core
// group. A text that begins with a slash has paths and verbs.
func ruleOf(text string) (rule rbacv1.PolicyRule) {
	parts := strings.Fields(text)
	if strings.HasPrefix(text, "/") {
		return rbacv1.PolicyRule{NonResourceURLs: strings.Split(parts[0], ","), Verbs: strings.Split(parts[1], ",")}
	}
	rule = rbacv1.PolicyRule{
		APIGroups: strings.Split(strings.ReplaceAll(parts[0], "core", ""), ","),
		Resources: strings.Split(parts[1], ","), Verbs: strings.Split(parts[2], ","),
	}
	if len(parts) > 3 {
		rule.ResourceNames = strings.Split(parts[3], ",")
	}
	return rule
}

func TestMissingPartsOfRules(t *testing.T) {
	cases := map[string]struct {
		reason  string
		need    string
		granted []string
		want    string
	}{
		"nothing": {"without rules, all is missing", "a.org widgets list,watch", nil, "list,watch widgets.a.org"},
		"verb": {"only the missing verbs are reported",
			"a.org widgets list,watch", []string{"a.org widgets get,list"}, "watch widgets.a.org"},
		"group": {"the same resource of another group is not granted",
			"a.org widgets list", []string{"b.org widgets list"}, "list widgets.a.org"},
		"core": {"a rule of the core group does not apply to others", "a.org pods list", []string{"core pods list"},
			"list pods.a.org"},
		"sub of resource": {"a resource does not include its subresources",
			"a.org widgets/status patch", []string{"a.org widgets patch"}, "patch widgets.a.org/status"},
		"resource of sub": {"a subresource does not include its resource",
			"a.org widgets patch", []string{"a.org widgets/status patch"}, "patch widgets.a.org"},
		"other sub": {"the wildcard of one subresource does not include another",
			"a.org widgets/status patch", []string{"a.org */scale patch"}, "patch widgets.a.org/status"},
		"names": {"a rule for names does not permit all objects",
			"core secrets get", []string{"core secrets get one"}, "get secrets"},
		"other name": {"a rule for other names is not enough",
			"core secrets get one", []string{"core secrets get two"}, "get secrets one"},
		"one of two groups": {"only the missing group is reported", "kopf.dev,zalando.org kopfpeerings get default",
			[]string{"kopf.dev kopfpeerings get"}, "get kopfpeerings.zalando.org default"},
		"wildcard need": {"a declared wildcard is only granted by a wildcard",
			"a.org * get", []string{"a.org widgets get"}, "get *.a.org"},
		"path": {"a longer path is not granted", "/metrics/x get", []string{"/metrics get"},
			"get /metrics/x"},
		"path and resource": {"rules for resources do not grant paths", "/metrics get", []string{"* * *"},
			"get /metrics"},

		"granted": {"equal rules suffice", "a.org widgets list", []string{"a.org widgets list"}, ""},
		"several": {"rules add up", "a.org widgets list,watch", []string{"a.org x,widgets list", "* * watch"}, ""},
		"all":     {"the wildcards grant everything", "a.org widgets/status patch x", []string{"* * *"}, ""},
		"any sub": {"*/status is that of all resources",
			"a.org widgets/status patch", []string{"* */status *"}, ""},
		"named":        {"a rule without names grants each", "core secrets get a,b", []string{"core secrets get"}, ""},
		"equal names":  {"a rule for all names is enough", "core secrets get a", []string{"core secrets get b,a"}, ""},
		"path pattern": {"a star at the end matches", "/metrics/x get", []string{"/metrics/* *"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var granted grantedRules
			for _, text := range c.granted {
				granted.rules = append(granted.rules, ruleOf(text))
			}
			got := ""
			if missing := missingFrom(granted, ruleOf(c.need)); len(missing) > 0 {
				got = subjectOf(ruleFor(ruleOf(c.need), missing))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want, +got):\n%s", c.reason, d)
			}
		})
	}
}

func TestDifferenceOfClocks(t *testing.T) {
	base := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return base.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		reason string
		sent   float64
		took   time.Duration
		want   time.Duration
	}{
		"equal":        {"equal clocks differ by nothing", 0.2, 10 * time.Millisecond, 0},
		"within":       {"the date has whole seconds, so less than one is not a difference", 0.9, 0, 0},
		"slow answer":  {"a slow answer does not look like a difference", -8, 10 * time.Second, 0},
		"ahead":        {"a local clock in the future is ahead", 11, time.Second, 10 * time.Second},
		"behind":       {"a local clock in the past is behind", -11, time.Second, -10 * time.Second},
		"ahead, exact": {"the second of the date is not counted", 1, time.Second, 0},
	} {
		if got := certainSkew(at(c.sent), c.took, base); got != c.want {
			t.Errorf("%s: %s: want %s, got %s", name, c.reason, c.want, got)
		}
	}
}
