package defaults_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const (
	operator        = "test.example.org"
	boundAnnotation = operator + "/handled-uid"
)

func TestDuration(t *testing.T) {
	cases := map[string]struct {
		reason       string
		input, value time.Duration
		want         string
	}{
		"Default": {"zero becomes the default", 0, time.Minute, ""},
		"Given":   {"a given value does not change", time.Hour, time.Hour, ""},
		"Named":   {"a special value that the field accepts does not change", defaults.Never, defaults.Never, ""},
		"OtherName": {
			"a special value that the field does not accept is an error",
			defaults.Immediately, defaults.Immediately, "kopf.Immediately: it must be",
		},
		"NoUnit": {"a bare number is an error, as it would be nanoseconds",
			60, 60, "field: 60ns: did you mean 60*time.Second?"},
		"Negative": {"a negative duration is an error", -1, -1, "or zero for the default of 1m0s, or kopf.Never"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			value := tc.input
			err := defaults.ResolveDuration("field", &value, time.Minute, defaults.Never)
			if value != tc.value || message(err) != tc.want && !strings.Contains(message(err), tc.want) ||
				(err == nil) != (tc.want == "") {
				t.Errorf("\n%s\nDuration(): %s, %v, want %s, %q", tc.reason, value, err, tc.value, tc.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNumberAndDelays(t *testing.T) {
	limit, none := -1, 0
	got := defaults.NonNilErrors(defaults.ResolveNumber("a", &limit, 0), defaults.ResolveNumber("b", &none, 7))
	got = append(got, defaults.CheckDelays("c", []time.Duration{time.Second, 0, 5})...)
	want := []string{
		"a: -1: it must be positive, or zero for no limit",
		"c[1]: 0s is not positive: the API server would be asked again and again",
		"c[2]: 5ns: did you mean 5*time.Second?",
	}
	if d := cmp.Diff(strings.Join(want, "\n"), errors.Join(got...).Error()); d != "" || none != 7 {
		t.Errorf("the default is %d, want 7; -want, +got:\n%s", none, d)
	}
}

func TestNamespaceScope(t *testing.T) {
	s := defaults.NamespaceScope{
		Names: []string{"b", "a", "b", "Team_A"}, Expressions: []*regexp.Regexp{nil}, Labels: "team", NamedOnly: true,
	}
	problems := s.CheckAndNormalize()
	if len(problems) != 3 || s.Labels != "" {
		t.Errorf("Check(): %v, labels %q; want errors about a name, an expression and the labels", problems, s.Labels)
	}
	if d := cmp.Diff([]string{"Team_A", "a", "b"}, s.Names); d != "" {
		t.Errorf("Check(): names -want, +got:\n%s", d)
	}
	labelled := defaults.NamespaceScope{Labels: "team=shop"}
	if got := labelled.ServedPatterns(); labelled.CheckAndNormalize() != nil || labelled.LabelSelector() == nil ||
		len(got) != 1 {
		t.Errorf("Patterns() by labels alone: %v, want all names with the labels", got.Texts())
	}
}

func TestPeering(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		input      defaults.Peering
		name       string
		wantErrors int
		idle       bool
	}{
		"Default": {"the default name is that of the operator", defaults.Peering{}, operator, 0, false},
		"KopfRules": {
			"KopfRules alone sets Kopf's name and does not need a peering",
			defaults.Peering{KopfRules: true}, "default", 0, false,
		},
		"Priority": {"a priority without a peering has no effect", defaults.Peering{Priority: 1}, operator, 0, true},
		"Lifetime": {"a lifetime of a second is an error",
			defaults.Peering{Name: "p", Lifetime: time.Second}, "p", 1, false},
		"Name": {"an invalid name of an object is an error", defaults.Peering{Name: "P_"}, "P_", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.input.HasUnusedFields(); got != tc.idle {
				t.Errorf("\n%s\nIdle(): %t, want %t", tc.reason, got, tc.idle)
			}
			if got := tc.input.ResolveDefaults(operator); len(got) != tc.wantErrors || tc.input.Name != tc.name {
				t.Errorf("\n%s\nResolve(): %v, name %q, want %d, %q", tc.reason, got, tc.input.Name, tc.wantErrors,
					tc.name)
			}
		})
	}
}

// TestMembers shows that with KopfRules, an operator pauses beside peers of its priority, and renews its record when
// Kopf does.
func TestMembers(t *testing.T) {
	for name, rules := range map[string]bool{"Ours": false, "KopfRules": true} {
		t.Run(name, func(t *testing.T) {
			p := defaults.Peering{Name: "p", Identity: "me", Priority: 1, KopfRules: rules}
			got := p.AsMember()
			if jitter := got.Jitter != nil; jitter != rules {
				t.Errorf("the member renews its record when Kopf does: %t, want %t", jitter, rules)
			}
			got.Jitter = nil
			want := peering.Member{
				Self: peering.Self{Identity: "me", Priority: 1, Elects: !rules}, Name: "p", KopfRules: rules,
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("AsMember(): -want, +got:\n%s", d)
			}
		})
	}
}

func TestPersistence(t *testing.T) {
	cases := map[string]struct {
		reason    string
		input     defaults.Persistence
		want      defaults.Persistence // the storages
		wantBound string
		wantError string
	}{
		"Defaults": {
			"by default, records are bound to the uid of their object",
			defaults.Persistence{},
			defaults.Persistence{
				DiffbaseStorage: diffbase.Annotations{Prefix: operator, WithoutV1: true, Bound: boundAnnotation},
				ProgressStorage: progress.Annotations{Prefix: operator, WithoutV1: true, Bound: boundAnnotation},
			}, boundAnnotation, "",
		},
		"AsKopf": {
			"Kopf's formats with trusted copies use Kopf's storages",
			defaults.Persistence{KopfFormats: true, TrustCopies: true},
			defaults.Persistence{
				DiffbaseStorage: diffbase.Annotations{Prefix: operator},
				ProgressStorage: progress.Smart{Prefix: operator},
			}, "", "",
		},
		"FormerKeys": {
			"former digest keys without a present one are an error",
			defaults.Persistence{TrustCopies: true, FormerDigestKeys: [][]byte{{1}}},
			defaults.Persistence{
				DiffbaseStorage: diffbase.Annotations{Prefix: operator, WithoutV1: true},
				ProgressStorage: progress.Annotations{Prefix: operator, WithoutV1: true},
			}, "", "Persistence.FormerDigestKeys: there is no DigestKey that came after them",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			form, problems := tc.input.ResolveDefaults(operator)
			err := errors.Join(problems...)
			if !strings.Contains(message(err), tc.wantError) || (err == nil) != (tc.wantError == "") {
				t.Errorf("\n%s\nResolve(): %v, want %q", tc.reason, err, tc.wantError)
			}
			got := defaults.Persistence{
				DiffbaseStorage: tc.input.DiffbaseStorage, ProgressStorage: tc.input.ProgressStorage,
			}
			if d := cmp.Diff(tc.want, got); d != "" || form.BoundTo != tc.wantBound {
				t.Errorf("\n%s\nResolve(): bound to %q; -want, +got:\n%s", tc.reason, form.BoundTo, d)
			}
		})
	}
}
