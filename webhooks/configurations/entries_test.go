package configurations_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

var (
	clientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://here/base")}
	ownForm      = configurations.Form{Suffix: "ops.example.org"}
)

func TestNames(t *testing.T) {
	long := strings.Repeat("long.", 60)
	for name, tc := range map[string]struct {
		reason, id, suffix, want string
	}{
		"Taken":       {"a valid name is that of Kopf", "a.b-c_d/e", "x.y", "a.b-c-d.e.x.y"},
		"Hex":         {"other characters are encoded as in Kopf", "a b", "x.y", "a20b.x.y"},
		"Short":       {"a name gets a third part if it has only two", "v", "ops", "v.ops.admission"},
		"Bare":        {"a name without a suffix gets two more parts", "v", "", "v.admission.admission"},
		"Upper":       {"upper-case letters become lower case with a digest", "Upper", "x.y", "upper-ada6d7a6.x.y"},
		"Lower":       {"a lower-case id does not get a digest", "upper", "x.y", "upper.x.y"},
		"UpperSuffix": {"a suffix becomes lower case", "v", "X.Y", "v.x.y"},
		"Script":      {"letters outside of ASCII are left out, with a digest", "größe", "x.y", "gre-d353a267.x.y"},
		"NoLatin":     {"an id without ASCII letters becomes its digest", "Ω", "x.y", "e3c622e5.x.y"},
		"Dashes":      {"dashes at the ends of parts are left out, with a digest", "_a_/-b", "x.y", "a.b-73d11cf2.x.y"},
		"Dots":        {"empty parts are left out, with a digest", "a//b", "x.y", "a.b-7a9acf33.x.y"},
	} {
		t.Run(name, func(t *testing.T) {
			got := validatingEntry(t, configurations.Hook{ID: tc.id}, configurations.Form{Suffix: tc.suffix}).Name
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			checkName(t, got)
		})
	}
	checkName(t, validatingEntry(t, configurations.Hook{ID: long}, ownForm).Name)
	checkName(t, validatingEntry(t, configurations.Hook{ID: long, Name: strings.Repeat("x", 240)}, ownForm).Name)
}

// checkName checks a name by the rule of the API server.
func checkName(t *testing.T, name string) {
	t.Helper()
	if wrong := validation.IsFullyQualifiedName(field.NewPath("name"), name); len(wrong) > 0 {
		t.Errorf("the API server refuses the name %q: %v", name, wrong)
	}
}

func TestSameName(t *testing.T) {
	hooks := []configurations.Hook{{ID: "a_b"}, {ID: "a-b", Mutating: true}}
	if _, err := configurations.ValidatingEntries(hooks, clientConfig, ownForm); err != nil {
		t.Errorf("the same name in two objects must be valid: %v", err)
	}
	hooks[1].Mutating = false
	_, err := configurations.ValidatingEntries(hooks, clientConfig, ownForm)
	if err == nil || !strings.Contains(err.Error(), `"a_b"`) || !strings.Contains(err.Error(), `"a-b"`) {
		t.Errorf("two entries of one name must be an error: got %v", err)
	}
}

func TestEntries(t *testing.T) {
	widgets := discovery.Resource{Plural: "widgets"}
	widgets.Group, widgets.Version = "example.org", "v2"
	condition := admissionregistrationv1.MatchCondition{Name: "small", Expression: "object.spec.size < 5"}
	hook := configurations.Hook{
		ID: "v", Name: "widgets/v", Path: "validate/widgets/v", Resources: []discovery.Resource{widgets},
		Conditions: []admissionregistrationv1.MatchCondition{condition},
	}
	entry := validatingEntry(t, hook, ownForm)
	got, named := *entry.ClientConfig.URL, entry.Name
	if got != "https://here/base/validate/widgets/v" || named != "widgets.v.ops.example.org" {
		t.Errorf("the entry must have the other name and the URL the other path: got %q and %q", got, named)
	}
	if len(entry.MatchConditions) != 0 {
		t.Error("conditions must be left out by default")
	}
	withConditions := configurations.Form{Suffix: "ops.example.org", Conditions: true}
	if got := validatingEntry(t, hook, withConditions).MatchConditions; len(got) != 1 || got[0] != condition {
		t.Errorf("conditions must be kept if enabled: got %v", got)
	}
	hook.Mutating = true
	entries, err := configurations.MutatingEntries([]configurations.Hook{hook}, clientConfig, withConditions)
	if err != nil {
		t.Fatal(err)
	}
	want := []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "CONNECT"}
	if delta := cmp.Diff(want, entries[0].Rules[0].Operations); delta != "" {
		t.Errorf("mutating handlers must not be called for deletions: -want, +got:\n%s", delta)
	}
	if got := entries[0].MatchConditions; len(got) != 1 {
		t.Errorf("conditions must be kept for mutating handlers, too: got %v", got)
	}
	if *clientConfig.URL != "https://here/base" {
		t.Errorf("the given client configuration was changed to %s", *clientConfig.URL)
	}
}

// TestPaths shows that paths are escaped as in Kopf: all bytes but ASCII letters, digits and "_.-~/".
func TestPaths(t *testing.T) {
	for name, tc := range map[string]struct{ reason, path, want string }{
		"Safe":    {"letters, digits and some marks are kept", "az/AZ/09/_.-~", "az/AZ/09/_.-~"},
		"Outside": {"characters beside the ranges of letters and digits are escaped", "`{@[:", "%60%7B%40%5B%3A"},
		"Marks":   {"marks with a meaning in URLs are escaped", "a b?c#d%e&f+g", "a%20b%3Fc%23d%25e%26f%2Bg"},
		"Script":  {"other letters are escaped by their bytes", "ö", "%C3%B6"},
	} {
		t.Run(name, func(t *testing.T) {
			got := *validatingEntry(t, configurations.Hook{ID: "v", Path: tc.path}, ownForm).ClientConfig.URL
			if want := "https://here/base/" + tc.want; got != want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, want)
			}
		})
	}
}

func TestRequirements(t *testing.T) {
	selector, err := labels.Parse("a=1,b!=2,c in (4,3),d notin (5),e,!f,g>6")
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.LabelSelectorRequirement{
		{Key: "a", Operator: "In", Values: []string{"1"}}, {Key: "b", Operator: "NotIn", Values: []string{"2"}},
		{Key: "c", Operator: "In", Values: []string{"3", "4"}},
		{Key: "d", Operator: "NotIn", Values: []string{"5"}}, {Key: "e", Operator: "Exists"},
		{Key: "f", Operator: "DoesNotExist"},
	}
	if delta := cmp.Diff(want, configurations.SelectorRequirements(selector)); delta != "" {
		t.Errorf("want all requirements but the comparison: -want, +got:\n%s", delta)
	}
}

// validatingEntry returns the entry of a validating handler.
func validatingEntry(
	t *testing.T, hook configurations.Hook, form configurations.Form,
) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	entries, err := configurations.ValidatingEntries([]configurations.Hook{hook}, clientConfig, form)
	if err != nil || len(entries) != 1 {
		t.Fatalf("want one entry, got %v and the error %v", entries, err)
	}
	return entries[0]
}
