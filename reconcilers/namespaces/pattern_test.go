package namespaces_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

func TestPatternsAreEqualByFormAndText(t *testing.T) {
	t.Parallel()
	expression := namespaces.Regexp(regexp.MustCompile("a"))
	for _, c := range []struct {
		reason string
		a, b   namespaces.Pattern
		want   bool
	}{
		{"The text is the same.", namespaces.Parse("a*"), namespaces.Parse("a*"), true},
		{"The text differs.", namespaces.Parse("a*"), namespaces.Parse("b*"), false},
		{"An expression is of its text.", expression, namespaces.Regexp(regexp.MustCompile("a")), true},
		{"An expression matches otherwise.", expression, namespaces.Parse("a"), false},
	} {
		if c.a.Equal(c.b) != c.want || c.b.Equal(c.a) != c.want {
			t.Errorf("%s\n%s and %s: want equal: %v", c.reason, c.a, c.b, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	patterns := namespaces.Patterns{
		namespaces.Parse("b"), namespaces.Parse("a"), namespaces.Parse("b"), namespaces.Parse("Not_A_Name"),
		namespaces.Parse("c*"), namespaces.Regexp(regexp.MustCompile("d")),
	}
	if delta := cmp.Diff([]string{"a", "b"}, patterns.Named()); delta != "" {
		t.Errorf("those that can exist, once, -want, +got:\n%s", delta)
	}
}

// Who waits for a change is woken up by one, and by the first news, but not by the same once more.
func TestLiveTellsOfChanges(t *testing.T) {
	t.Parallel()
	live := namespaces.NewLive()
	for _, c := range []struct {
		reason string
		names  []string
		want   []string
		tells  bool
	}{
		{"That there are none is news.", nil, []string{}, true},
		{"There are some.", []string{"b", "a", "b"}, []string{"a", "b"}, true},
		{"They are the same, in another order.", []string{"a", "b"}, []string{"a", "b"}, false},
		{"One has gone.", []string{"b"}, []string{"b"}, true},
	} {
		_, changed := live.Current()
		live.Set(c.names)
		told := false
		select {
		case <-changed:
			told = true
		default:
		}
		names, _ := live.Current()
		if delta := cmp.Diff(c.want, names); delta != "" || told != c.tells {
			t.Errorf("%s\ntold: %v, want %v; -want, +got:\n%s", c.reason, told, c.tells, delta)
		}
	}
}
