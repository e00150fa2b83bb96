package namespaces_test

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

func parsePatterns(texts ...string) (all namespaces.Patterns) {
	for _, text := range texts {
		all = append(all, namespaces.ParsePattern(text))
	}
	return all
}

// namespaceRules has all forms of patterns.
var namespaceRules = map[string]namespaces.NamespaceRule{
	"everywhere":      {},
	"names":           {Served: parsePatterns("shop", "team-a")},
	"stars":           {Served: parsePatterns("team-*", "*-b", "s*p")},
	"question marks":  {Served: parsePatterns("tea?-a", "?")},
	"classes":         {Served: parsePatterns("team-[a-c]", "[!t]*", "team-[z-a]x", "[]]x", "[!z-a]hop")},
	"taken away":      {Served: parsePatterns("team-*,!*-a,!*-b,team-b")},
	"all but":         {Served: parsePatterns("!kube-*", "!*")},
	"expressions":     {Served: namespaces.Patterns{namespaces.PatternFromRegexp(regexp.MustCompile("a|ab|(?i)SHOP"))}},
	"named only":      {Served: parsePatterns("shop", "team-*"), NamedOnly: true},
	"none named":      {Served: parsePatterns("team-*"), NamedOnly: true},
	"one excluded":    {Excluded: parsePatterns("shop")},
	"many excluded":   {Served: parsePatterns("*"), Excluded: parsePatterns("shop", "kube-*", "team-?")},
	"served excluded": {Served: parsePatterns("shop", "team-a"), Excluded: parsePatterns("shop")},
}

var names = []string{
	"shop", "team-a", "team-b", "team-c", "team-zx", "team-", "a", "ab", "abc", "kube-system", "kube-", "x-b", "sp",
	"]x", "xshop", "shopx",
}

// TestExpression shows that the expression is true for exactly the names of the scope.
func TestExpression(t *testing.T) {
	t.Parallel()
	for reason, scope := range namespaceRules {
		for _, name := range names {
			expression := scope.MatchExpression(func(expression string) string {
				return strconv.FormatBool(regexp.MustCompile(expression).MatchString(name))
			})
			got, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
			if err != nil || got.Value.String() != strconv.FormatBool(scope.IncludesNamespace(name)) {
				t.Errorf("%s: %q: has %t, but %s; %v", reason, name, scope.IncludesNamespace(name), expression, err)
			}
		}
	}
}

// TestScopeInParts shows that names and the remaining patterns together are equal to the scope.
func TestScopeInParts(t *testing.T) {
	t.Parallel()
	for reason, scope := range namespaceRules {
		in, notIn, rest, hasRest := scope.SplitByName()
		for _, name := range names {
			selected := (in == nil || slices.Contains(in, name)) && !slices.Contains(notIn, name)
			if got := selected && (!hasRest || rest.IncludesNamespace(name)); got != scope.IncludesNamespace(name) {
				t.Errorf("%s: %q: got %t; in %q, not in %q, and %v", reason, name, got, in, notIn, rest)
			}
		}
	}
	in, notIn, _, rest := namespaceRules["served excluded"].SplitByName()
	if d := cmp.Diff([][]string{{"shop", "team-a"}, {"shop"}}, [][]string{in, notIn}); d != "" || rest {
		t.Errorf("names need no expression: -want, +got:\n%s", d)
	}
}

// TestScopeHas shows which names are in a scope.
func TestScopeHas(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		scope string
		name  string
		want  bool
	}{
		"an unrestricted scope has every name":              {"everywhere", "any", true},
		"a scope of names does not have other names":        {"names", "team-b", false},
		"a scope of names has its names":                    {"names", "shop", true},
		"a scope of names only ignores patterns":            {"named only", "team-a", false},
		"a scope of names only has its names":               {"named only", "shop", true},
		"an excluded name is not in an unrestricted scope":  {"one excluded", "shop", false},
		"an excluded name is not in a scope with that name": {"served excluded", "shop", false},
		"a pattern can exclude a name":                      {"many excluded", "kube-system", false},
	} {
		if got := namespaceRules[tc.scope].IncludesNamespace(tc.name); got != tc.want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
}
