package namespaces_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// TestPatternsAreEqualByFormAndText shows that patterns are compared by their form and text.
func TestPatternsAreEqualByFormAndText(t *testing.T) {
	t.Parallel()
	expression := namespaces.PatternFromRegexp(regexp.MustCompile("a"))
	for _, c := range []struct {
		reason string
		a, b   namespaces.NamespacePattern
		want   bool
	}{
		{"Patterns with the same text are equal.", namespaces.ParsePattern("a*"), namespaces.ParsePattern("a*"), true},
		{"Patterns with different texts are not equal.", namespaces.ParsePattern("a*"), namespaces.ParsePattern("b*"),
			false},
		{"Expressions with the same text are equal.", expression, namespaces.PatternFromRegexp(regexp.MustCompile("a")),
			true},
		{"An expression is not equal to a pattern of the same text.", expression, namespaces.ParsePattern("a"), false},
	} {
		if c.a.Equal(c.b) != c.want || c.b.Equal(c.a) != c.want {
			t.Errorf("%s\n%s and %s: want equal: %v", c.reason, c.a, c.b, c.want)
		}
	}
}

// TestNamed shows that the valid names among patterns are returned once, sorted.
func TestNamed(t *testing.T) {
	t.Parallel()
	patterns := namespaces.Patterns{
		namespaces.ParsePattern("b"), namespaces.ParsePattern("a"), namespaces.ParsePattern("b"),
		namespaces.ParsePattern("Not_A_Name"),
		namespaces.ParsePattern("c*"), namespaces.PatternFromRegexp(regexp.MustCompile("d")),
	}
	if delta := cmp.Diff([]string{"a", "b"}, patterns.ExactNames()); delta != "" {
		t.Errorf("want the valid names once, -want, +got:\n%s", delta)
	}
}

// TestLiveReportsChanges shows that waiting callers are notified of the first names and of changes, but not of equal
// names.
func TestLiveReportsChanges(t *testing.T) {
	t.Parallel()
	live := namespaces.NewLive()
	for _, c := range []struct {
		reason string
		names  []string
		want   []string
		tells  bool
	}{
		{"The first names are reported, even if there are none.", nil, []string{}, true},
		{"Added names are reported, sorted and without duplicates.", []string{"b", "a", "b"}, []string{"a", "b"}, true},
		{"The same names in another order are not reported.", []string{"a", "b"}, []string{"a", "b"}, false},
		{"A removed name is reported.", []string{"b"}, []string{"b"}, true},
	} {
		_, changed := live.Current()
		live.Replace(c.names)
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		names, _ := live.Current()
		if delta := cmp.Diff(c.want, names); delta != "" || told != c.tells {
			t.Errorf("%s\nreported: %v, want %v; -want, +got:\n%s", c.reason, told, c.tells, delta)
		}
	}
}
