package rules_test

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// schemeOnlyManager is a manager with only a scheme: the set-up reports mistakes before it uses anything else.
type schemeOnlyManager struct {
	manager.Manager
	scheme *runtime.Scheme
}

func (m schemeOnlyManager) GetScheme() *runtime.Scheme { return m.scheme }

func setUp(op *kopf.Operator) error {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.org", Version: "v1"}, &Database{})
	return op.SetupWithManager(schemeOnlyManager{scheme: scheme})
}

func TestAddMistakes(t *testing.T) {
	cases := map[string]struct {
		reason string
		add    func(dbs kopf.Selection[*Database])
		want   string
	}{
		"UnknownField": {
			reason: "a rule is checked against the type of the selection",
			add:    func(dbs kopf.Selection[*Database]) { rules.Add(dbs, rules.New("r", "object.spec.sise > 0", "m")) },
			want:   `rules/add_test.go:\d+: rules.Add: rule "r": of rules_test.Database: .* did you mean size\?`,
		},
		"Unguarded": {
			reason: "an error of the rule itself is reported",
			add: func(dbs kopf.Selection[*Database]) {
				rules.Add(dbs, rules.New("r", "oldObject.spec.size > 0", "m"))
			},
			want: `rules/add_test.go:\d+: rules.Add: rule "r": oldObject.spec is read in a creation as well`,
		},
		"Nil": {
			reason: "a nil rule is an error, not a panic",
			add:    func(dbs kopf.Selection[*Database]) { rules.Add(dbs, nil) },
			want:   `rules/add_test.go:\d+: rules.Add: the rule is nil`,
		},
		"ID": {
			reason: "an invalid handler id is an error", want: `rules/add_test.go:\d+: Validate\("a b"\)`,
			add: func(dbs kopf.Selection[*Database]) { rules.Add(dbs, rules.New("a b", "object.spec.size > 0", "m")) },
		},
		"Twice": {
			reason: "the id of another handler is an error",
			want:   `Validate\("r"\): the id is taken by Validate at rules/add_test.go`,
			add: func(dbs kopf.Selection[*Database]) {
				rule := rules.New("r", "object.spec.size > 0", "m")
				rules.Add(dbs, rule)
				rules.Add(dbs, rule, kopf.IgnoreFailures())
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			op := kopf.New("op.example.org")
			tc.add(kopf.For(op, &Database{}))
			err := setUp(op)
			if err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) {
				t.Errorf("%s\nthe set-up: got %v, want an error that matches %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestAddToNothing(t *testing.T) {
	rules.Add(kopf.Selection[*Database]{}, rules.New("r", "1", "m"))
	err := setUp(kopf.New("op.example.org"))
	want := regexp.MustCompile(`rules/add_test.go:\d+: rules.Add: rule "r"`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("the set-up: got %v, want an error that matches %s", err, want)
	}
}
