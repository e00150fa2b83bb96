package agreement_test

import (
	"context"
	"strings"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// specialCharacters contains the characters that texts in CEL, regular expressions and formats have to escape.
const specialCharacters = "\"'\\n`${x} %s %d\n\r\t\x00\x7fäöü€😀�^.*$"

type selection = kopf.Selection[*kopf.Unstructured]

// filter is one filter of the table, with the number of its conditions.
type filter struct {
	name          string
	narrow        func(selection) selection
	options       []kopf.Option
	conditions    int
	isApproximate bool // the API server may send requests without a handler
}

func annotated(key string, pattern any) func(selection) selection {
	return func(s selection) selection { return s.WithAnnotation(key, pattern) }
}

func selected(selector string) func(selection) selection {
	return func(s selection) selection { return s.MatchingAnnotations(selector) }
}

func labelled(selector string) func(selection) selection {
	return func(s selection) selection { return s.MatchingLabels(selector) }
}

func whole(s selection) selection { return s }

func field(path string, pattern ...any) []kopf.Option {
	options := []kopf.Option{kopf.InField(path)}
	for _, one := range pattern {
		options = append(options, kopf.Value(one))
	}
	return options
}

func is(any, bool) bool { return true }

func filters() []filter {
	all := []filter{
		{name: "no filter", narrow: whole},
		{name: "present", narrow: annotated("Example.org/a.b-c_d", kopf.Present), conditions: 1},
		{name: "absent", narrow: annotated("a", kopf.Absent), conditions: 1},
		{name: "equal", narrow: annotated("a", "x"), conditions: 1},
		{name: "nasty", narrow: annotated("a", specialCharacters), conditions: 1},
		{name: "empty", narrow: annotated("a", ""), conditions: 1},
		{name: "no text", narrow: annotated("a", "\xff"), isApproximate: true},
		{name: "long", narrow: annotated("a", strings.Repeat("x", 20<<10)), isApproximate: true},
		{name: "function", narrow: annotated("a", func(v string, _ bool) bool { return v == "x" }),
			isApproximate: true},
		{name: "selector", narrow: selected("a,!b,c in (x,y),d notin (x,y),e!=z"), conditions: 5},
		{name: "equals", narrow: selected("a=x"), conditions: 1},
		{name: "in", narrow: selected("a in (x,y)"), conditions: 1},
		{name: "not in", narrow: selected("a notin (x,5)"), conditions: 1},
		{name: "greater", narrow: selected("a>4"), conditions: 1, isApproximate: true},
		{name: "most", narrow: selected("a<9223372036854775807"), conditions: 1, isApproximate: true},
		{name: "less", narrow: labelled("n<10,tier=prod"), conditions: 1, isApproximate: true},
		{name: "label", narrow: labelled("tier=prod"), isApproximate: true},
		{name: "when", isApproximate: true, narrow: func(s selection) selection {
			return s.When(func(context.Context, *kopf.Unstructured) bool { return false })
		}},
		{name: "there", narrow: whole, options: field("spec.x"), conditions: 1},
		{name: "quoted", narrow: whole, options: field(`spec."in.a/\"b"`), conditions: 1},
		{name: "not there", narrow: whole, options: field("spec.x.y", kopf.Absent), conditions: 1},
		{name: "pattern", narrow: whole, options: field("spec.x", is), isApproximate: true},
		{name: "deep", narrow: whole, options: field(strings.Repeat("spec.", 20) + "x"), isApproximate: true},
		{name: "too many", conditions: 62, isApproximate: true, narrow: func(s selection) selection {
			for range 70 {
				s = s.WithAnnotation("a", kopf.Present)
			}
			return s
		}},
		{name: "any subresource", narrow: annotated("a", "x"), conditions: 1, isApproximate: true,
			options: []kopf.Option{kopf.Subresource("*")}},
		{name: "scale", narrow: annotated("a", "x"), isApproximate: true,
			options: []kopf.Option{kopf.Subresource("scale")}},
		{name: "status", narrow: annotated("a", "x"), conditions: 1,
			options: []kopf.Option{kopf.Subresource("status")}},
	}
	for _, value := range values[1:] { // filters cannot require null
		all = append(all, filter{name: "value", narrow: whole, options: field("spec.x", value), conditions: 1})
	}
	for _, value := range []any{int64(1) << 60, 1e300} {
		all = append(all, filter{name: "large", narrow: whole, options: field("spec.x", value), isApproximate: true})
	}
	return all
}

// values are compared with one another.
var values = []any{
	nil, true, false, "", "x", specialCharacters, int64(0), int64(1), int64(-1), int64(1)<<53 - 1, 0.5, -1e-7, 5e-324,
	1.0,
	[]any{}, []any{nil, "x", int64(1), true}, []any{nil, "x", 1.0, true}, []any{[]any{map[string]any{}}},
	map[string]any{}, map[string]any{"a": nil}, map[string]any{"y": int64(1), specialCharacters: []any{0.5}},
	map[string]any{"y": 1.0, specialCharacters: []any{0.5}},
}
