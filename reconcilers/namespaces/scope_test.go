package namespaces_test

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

func parsed(texts ...string) (all namespaces.Patterns) {
	for _, text := range texts {
		all = append(all, namespaces.Parse(text))
	}
	return all
}

// scopes are all forms of patterns.
var scopes = map[string]namespaces.Scope{
	"everywhere":      {},
	"names":           {Served: parsed("shop", "team-a")},
	"stars":           {Served: parsed("team-*", "*-b", "s*p")},
	"question marks":  {Served: parsed("tea?-a", "?")},
	"classes":         {Served: parsed("team-[a-c]", "[!t]*", "team-[z-a]x", "[]]x", "[!z-a]hop")},
	"taken away":      {Served: parsed("team-*,!*-a,!*-b,team-b")},
	"all but":         {Served: parsed("!kube-*", "!*")},
	"expressions":     {Served: namespaces.Patterns{namespaces.Regexp(regexp.MustCompile("a|ab|(?i)SHOP"))}},
	"named only":      {Served: parsed("shop", "team-*"), NamedOnly: true},
	"none named":      {Served: parsed("team-*"), NamedOnly: true},
	"one excluded":    {Excluded: parsed("shop")},
	"many excluded":   {Served: parsed("*"), Excluded: parsed("shop", "kube-*", "team-?")},
	"served excluded": {Served: parsed("shop", "team-a"), Excluded: parsed("shop")},
}

var names = []string{
	"shop", "team-a", "team-b", "team-c", "team-zx", "team-", "a", "ab", "abc", "kube-system", "kube-", "x-b", "sp",
	"]x", "xshop", "shopx",
}

// The expression has to be true for the names of the scope, and for no other ones.
func TestExpression(t *testing.T) {
	t.Parallel()
	for reason, scope := range scopes {
		for _, name := range names {
			expression := scope.Expression(func(expression string) string {
				return strconv.FormatBool(regexp.MustCompile(expression).MatchString(name))
			})
			got, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
			if err != nil || got.Value.String() != strconv.FormatBool(scope.Has(name)) {
				t.Errorf("%s: %q: has %t, but %s; %v", reason, name, scope.Has(name), expression, err)
			}
		}
	}
}

// Names and the rest together are the scope.
func TestScopeInParts(t *testing.T) {
	t.Parallel()
	for reason, scope := range scopes {
		in, notIn, rest, hasRest := scope.In()
		for _, name := range names {
			selected := (in == nil || slices.Contains(in, name)) && !slices.Contains(notIn, name)
			if got := selected && (!hasRest || rest.Has(name)); got != scope.Has(name) {
				t.Errorf("%s: %q: got %t; in %q, not in %q, and %v", reason, name, got, in, notIn, rest)
			}
		}
	}
	in, notIn, _, rest := scopes["served excluded"].In()
	if d := cmp.Diff([][]string{{"shop", "team-a"}, {"shop"}}, [][]string{in, notIn}); d != "" || rest {
		t.Errorf("names need no expression: -want, +got:\n%s", d)
	}
}

func TestScopeHas(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		scope string
		name  string
		want  bool
	}{
		"nothing restricts the operator":               {"everywhere", "any", true},
		"another name is not served":                   {"names", "team-b", false},
		"the name is served":                           {"names", "shop", true},
		"patterns are not looked at where none listed": {"named only", "team-a", false},
		"names are, there":                             {"named only", "shop", true},
		"an excluded one is out of the cluster":        {"one excluded", "shop", false},
		"an excluded one is out of the served ones":    {"served excluded", "shop", false},
		"a pattern excludes":                           {"many excluded", "kube-system", false},
	} {
		if got := scopes[tc.scope].Has(tc.name); got != tc.want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
}
