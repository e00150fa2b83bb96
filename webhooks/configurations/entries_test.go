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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

var (
	here = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://here/base")}
	ours = configurations.Form{Suffix: "ops.example.org"}
)

func TestNames(t *testing.T) {
	long := strings.Repeat("long.", 60)
	for name, tc := range map[string]struct {
		reason, id, suffix, want string
	}{
		"Taken":       {"a name that the API server takes is Kopf's", "a.b-c_d/e", "x.y", "a.b-c-d.e.x.y"},
		"Hex":         {"so is one with other characters", "a b", "x.y", "a20b.x.y"},
		"Short":       {"names have three parts at least", "v", "ops", "v.ops.admission"},
		"Bare":        {"that is so without a suffix, too", "v", "", "v.admission.admission"},
		"Upper":       {"small letters only, and no other id has the name", "Upper", "x.y", "upper-ada6d7a6.x.y"},
		"Lower":       {"its small sister has another one", "upper", "x.y", "upper.x.y"},
		"UpperSuffix": {"names of objects are small already", "v", "X.Y", "v.x.y"},
		"Script":      {"letters of ASCII only", "größe", "x.y", "gre-d353a267.x.y"},
		"NoLatin":     {"nothing is left but the digest", "Ω", "x.y", "e3c622e5.x.y"},
		"Dashes":      {"no part begins or ends with a dash", "_a_/-b", "x.y", "a.b-73d11cf2.x.y"},
		"Dots":        {"no part is empty", "a//b", "x.y", "a.b-7a9acf33.x.y"},
	} {
		t.Run(name, func(t *testing.T) {
			got := one(t, configurations.Hook{ID: tc.id}, configurations.Form{Suffix: tc.suffix}).Name
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			checkName(t, got)
		})
	}
	checkName(t, one(t, configurations.Hook{ID: long}, ours).Name)
	checkName(t, one(t, configurations.Hook{ID: long, Name: strings.Repeat("x", 240)}, ours).Name)
}

// checkName is the rule of the API server.
func checkName(t *testing.T, name string) {
	t.Helper()
	if wrong := validation.IsFullyQualifiedName(field.NewPath("name"), name); len(wrong) > 0 {
		t.Errorf("the API server would not take the name %q: %v", name, wrong)
	}
}

func TestSameName(t *testing.T) {
	hooks := []configurations.Hook{{ID: "a_b"}, {ID: "a-b", Mutating: true}}
	if _, err := configurations.Validating(hooks, here, ours); err != nil {
		t.Errorf("the two objects have names of their own: %v", err)
	}
	hooks[1].Mutating = false
	_, err := configurations.Validating(hooks, here, ours)
	if err == nil || !strings.Contains(err.Error(), `"a_b"`) || !strings.Contains(err.Error(), `"a-b"`) {
		t.Errorf("the API server refuses two entries of one name: got the error %v", err)
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
	entry := one(t, hook, ours)
	got, named := *entry.ClientConfig.URL, entry.Name
	if got != "https://here/base/validate/widgets/v" || named != "widgets.v.ops.example.org" {
		t.Errorf("another name is in name, another path in the URL: got %q and %q", got, named)
	}
	if len(entry.MatchConditions) != 0 {
		t.Error("conditions are not asked for")
	}
	withConditions := configurations.Form{Suffix: "ops.example.org", Conditions: true}
	if got := one(t, hook, withConditions).MatchConditions; len(got) != 1 || got[0] != condition {
		t.Errorf("conditions are asked for: got %v", got)
	}
	hook.Mutating = true
	entries, err := configurations.Mutating([]configurations.Hook{hook}, here, withConditions)
	if err != nil {
		t.Fatal(err)
	}
	want := []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "CONNECT"}
	if delta := cmp.Diff(want, entries[0].Rules[0].Operations); delta != "" {
		t.Errorf("mutating handlers are not called for deletions: -want, +got:\n%s", delta)
	}
	if got := entries[0].MatchConditions; len(got) != 1 {
		t.Errorf("conditions are of both types: got %v", got)
	}
	if *here.URL != "https://here/base" {
		t.Errorf("what comes in is changed to %s", *here.URL)
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
	if delta := cmp.Diff(want, configurations.Requirements(selector)); delta != "" {
		t.Errorf("all but the comparison can be said: -want, +got:\n%s", delta)
	}
}

// one is the entry of a validating handler.
func one(t *testing.T, hook configurations.Hook, form configurations.Form) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	entries, err := configurations.Validating([]configurations.Hook{hook}, here, form)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %v and the error %v", entries, err)
	}
	return entries[0]
}
