package namespaces_test

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestVectorsNamespacePattern compares the matching of patterns with Kopf's.
func TestVectorsNamespacePattern(t *testing.T) {
	vectors.Play(t, "namespace_pattern", nil, func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "name", "pattern", "patterns", "regexp")
		switch name := input.Text("name", ""); {
		case input["patterns"] != nil:
			specific := []any{}
			for _, one := range patternsOf(input.List("patterns")) {
				if one.IsExactName() {
					specific = append(specific, one.String())
				}
			}
			return map[string]any{"specific": specific}, nil
		case input["regexp"] != nil:
			expression, err := regexp.Compile(input.Text("regexp", ""))
			if err != nil {
				return nil, err
			}
			return map[string]any{"match": namespaces.PatternFromRegexp(expression).MatchesName(name)}, nil
		default:
			return map[string]any{"match": namespaces.ParsePattern(input.Text("pattern", "")).MatchesName(name)}, nil
		}
	})
}

// TestVectorsNamespaceEvent compares the served namespaces after events with Kopf's.
func TestVectorsNamespaceEvent(t *testing.T) {
	vectors.Play(t, "namespace_event", nil, func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "patterns", "steps")
		patterns, after := patternsOf(input.List("patterns")), []any{}
		served := namespaces.NewServed(patterns...)
		for _, item := range input.List("steps") {
			step := vectors.Known(t, item, "listed", "object", "type")
			switch {
			case step["listed"] != nil:
				// The informer reports a listing as events, and objects that are not in it as deleted.
				served = namespaces.NewServed(patterns...)
				for _, object := range objectsOf(step.List("listed")) {
					served.ApplyEvent(watch.Added, object)
				}
			case step["type"] != nil: // the listing has what a watch begins with
				served.ApplyEvent(watch.EventType(step.Text("type", "")), step.Object("object"))
			}
			names := []any{}
			for _, name := range served.Names() {
				names = append(names, name)
			}
			after = append(after, names)
		}
		return after, nil
	})
}

func patternsOf(texts []any) (parsed namespaces.Patterns) {
	for _, one := range texts {
		text, _ := one.(string)
		parsed = append(parsed, namespaces.ParsePattern(text))
	}
	return parsed
}

func objectsOf(list []any) (objects []map[string]any) {
	for _, one := range list {
		object, _ := one.(map[string]any)
		objects = append(objects, object)
	}
	return objects
}

// TestGlobs covers patterns that the vectors lack: brackets as members, literal brackets, and ranges.
func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"a*b*c", []string{"abc", "aXbXbXc"}, []string{"abcd", "acb", ""}},
		{"**", []string{"", "a"}, nil},
		{"ns[0-9]", []string{"ns5"}, []string{"nsa", "ns", "ns55"}},
		{"ns[a-c0-9x]", []string{"nsa", "nsc", "ns0", "ns9", "nsx"}, []string{"nsd", "ns-"}},
		{"ns[!", []string{"ns[!"}, []string{"nsa"}},
		{"ns[!]", []string{"ns[!]"}, []string{"nsa", "ns!"}},
		{"ns[]", []string{"ns[]"}, []string{"ns", "ns]"}},
		{"ns[5-5]", []string{"ns5"}, []string{"ns4"}},
		{"ns[9-0]", nil, []string{"ns5", "ns9", "ns-"}},
		{"ns[]x]", []string{"ns]", "nsx"}, []string{"ns["}},
		{"ns[!]x]", []string{"nsa"}, []string{"ns]", "nsx"}},
		{"ns[a-]", []string{"nsa", "ns-"}, []string{"nsb"}},
		{"ns[^a]", []string{"ns^", "nsa"}, []string{"nsb"}},
		{"ns[1", []string{"ns[1"}, []string{"ns1"}},
		{"ns[", []string{"ns["}, []string{"ns"}},
		{"a.c", []string{"a.c"}, []string{"abc"}},
		{"!!a", []string{"b"}, []string{"a"}},
		{"x*, !x1, !x2, x1", []string{"x1", "x3"}, []string{"x2", "y"}},
	} {
		for _, name := range c.yes {
			if !namespaces.ParsePattern(c.pattern).MatchesName(name) {
				t.Errorf("%q does not match %q", c.pattern, name)
			}
		}
		for _, name := range c.no {
			if namespaces.ParsePattern(c.pattern).MatchesName(name) {
				t.Errorf("%q matches %q", c.pattern, name)
			}
		}
	}
}

// TestRegexp covers expressions that prefer a part of a name, and one of another syntax.
func TestRegexp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression *regexp.Regexp
		yes, no    []string
	}{
		{regexp.MustCompile("a|ab"), []string{"a", "ab"}, []string{"b", "abc", "xab"}},
		{regexp.MustCompile("ns-.*?"), []string{"ns-", "ns-1"}, []string{"my-ns-1"}},
		{regexp.MustCompile("^ns$"), []string{"ns"}, []string{"ns1"}},
		{regexp.MustCompilePOSIX("a**"), []string{"", "aa"}, []string{"ab"}},
	} {
		p := namespaces.PatternFromRegexp(c.expression)
		for _, name := range c.yes {
			if !p.MatchesName(name) {
				t.Errorf("%s does not match %q", p, name)
			}
		}
		for _, name := range c.no {
			if p.MatchesName(name) {
				t.Errorf("%s matches %q", p, name)
			}
		}
	}
}

// TestPlain shows which patterns are plain names.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns namespaces.Patterns
		plain    bool
	}{
		{namespaces.Patterns{namespaces.ParsePattern("a"), namespaces.ParsePattern("b-1")}, true},
		{namespaces.Patterns{namespaces.ParsePattern("a"), namespaces.ParsePattern("b*")}, false},
		{namespaces.Patterns{namespaces.ParsePattern("ns[0-9]")}, false},
		{namespaces.Patterns{namespaces.ParsePattern("!a")}, false},
		{namespaces.Patterns{namespaces.ParsePattern("a,b")}, false},
		{namespaces.Patterns{namespaces.PatternFromRegexp(regexp.MustCompile("a"))}, false},
	} {
		if names, plain := c.patterns.PlainNames(); plain != c.plain || plain && len(names) != len(c.patterns) {
			t.Errorf("%s: %v, %v", c.patterns, names, plain)
		}
	}
}

// TestServedForgetsWhatIsDeletedByForce shows that a namespace is removed by its deletion even if its status reports
// content, as its finalizer can be removed by force.
func TestServedForgetsWhatIsDeletedByForce(t *testing.T) {
	t.Parallel()
	served := namespaces.NewServed(namespaces.ParsePattern("a*"))
	object := map[string]any{
		"metadata": map[string]any{"name": "a1", "deletionTimestamp": "x"},
		"status":   map[string]any{"conditions": []any{map[string]any{"status": "True"}}},
	}
	served.ApplyEvent(watch.Modified, object)
	if names := served.Names(); len(names) != 1 {
		t.Errorf("a terminating namespace with content must be served: %v", names)
	}
	served.ApplyEvent(watch.Deleted, object)
	if names := served.Names(); len(names) != 0 {
		t.Errorf("a deleted namespace is still served: %v", names)
	}
}
