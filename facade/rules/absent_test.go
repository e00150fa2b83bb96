package rules_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// TestAbsent is about fields of an object that is null.
func TestAbsent(t *testing.T) {
	cases := map[string]struct {
		reason, expression string
		only               []rules.Option
		want               string // what is read; empty if nothing is
	}{
		"Unguarded": {
			reason: "creations would all be refused", expression: "object.spec.size >= oldObject.spec.size",
			want: `oldObject.spec is read in a creation as well, where oldObject is null: write "oldObject == null ` +
				`|| (...)" around it, or give Operations("UPDATE")`,
		},
		"Deletion": {
			reason: "there, it is the object that is null", expression: "object.spec.size > 0",
			only: []rules.Option{rules.Operations("UPDATE", "DELETE")},
			want: `object.spec is read in a deletion as well, where object is null: write "object == null || (...)" ` +
				`around it, or leave DELETE out of Operations`,
		},
		"WrongGuard": {
			reason: "this one guards nothing", expression: "oldObject != null || oldObject.a == 1", want: "oldObject.a",
		},
		"GuardOfOther": {
			reason: "the other object", expression: "object == null || oldObject.a == 1", want: "oldObject.a",
		},
		"GuardTooWeak": {
			reason: "it may be true", expression: "object.a == 1 || oldObject.a == 1", want: "oldObject.a",
		},
		"OneOfTwo": {
			reason:     "the second",
			expression: "(oldObject == null || oldObject.a == 1) && oldObject.b == 1", want: "oldObject.b",
		},
		"WrongSide": {
			reason: "of a choice", expression: "oldObject == null ? oldObject.a == 1 : true", want: "oldObject.a",
		},
		"EitherSide": {
			reason: "of one that is open", expression: "(object.a == 1 ? oldObject : object).b == 1", want: ".b",
		},
		"Index": {reason: "is a read", expression: "oldObject['a'] == 1", want: `oldObject["a"]`},
		"Has": {
			reason:     "asks for a field, and is no guard",
			expression: "!has(oldObject.a) || oldObject.a == 1", want: "has(oldObject.a)",
		},
		"Optional": {reason: "reads as well", expression: "oldObject.?a.orValue(1) == 1", want: "oldObject.?a"},
		"Function": {reason: "takes no null", expression: "size(oldObject) > 1", want: "size(oldObject)"},
		"Method": {
			reason: "is of no null", expression: "oldObject.all(key, key != '')", want: "oldObject.all(",
		},
		"In": {reason: "takes no null either", expression: "'a' in oldObject", want: "in oldObject"},
		"Loop": {
			reason: "reads in a macro", expression: "object.l.all(x, x < oldObject.a)", want: "oldObject.a",
		},
		"LoopOver": {
			reason: "the list of the macro", expression: "oldObject.l.exists(x, x == 1)", want: "oldObject.l",
		},
		"OtherName": {reason: "of a variable", expression: "[oldObject].all(x, x.a == 1)", want: "x.a"},
		"Gathered": {
			reason: "out of a list that was made", expression: "object.l.map(x, oldObject)[0].a == 1", want: ".a",
		},
		"GatheredMore": {
			reason: "out of a list that is added to", expression: "(object.l + [oldObject])[0].a == 1", want: "[0].a",
		},
		"Listed": {
			reason:     "lists may have null in them",
			expression: "[oldObject].size() == 1 && object in [oldObject, object]",
		},
		"Mapping": {reason: "out of a mapping", expression: "{'k': oldObject}.k.a == 1", want: ".k.a"},
		"Dyn":     {reason: "is the same value", expression: "dyn(oldObject).a == 1", want: "dyn(oldObject).a"},
		"OnlyUpdate": {
			reason:     "there is an old one",
			expression: "oldObject.a == 1", only: []rules.Option{rules.Operations("UPDATE")},
		},
		"OnlyDelete": {
			reason:     "there is an old one",
			expression: "oldObject.a == 1", only: []rules.Option{rules.Operations("DELETE")},
		},
		"Or": {reason: "the usual guard", expression: "oldObject == null || oldObject.a == 1"},
		"OrBehind": {
			reason: "errors give way to true on any side", expression: "oldObject.a == 1 || oldObject == null",
		},
		"OrFarBehind": {
			reason: "in longer ones, too", expression: "object.a == 1 || oldObject.a == 1 || null == oldObject",
		},
		"And":    {reason: "the other guard", expression: "!(oldObject != null && oldObject.a == 1)"},
		"Not":    {reason: "negated", expression: "!(oldObject != null) || oldObject.a == 1"},
		"Choice": {reason: "as a choice", expression: "oldObject != null ? oldObject.a == 1 : object.a == 1"},
		"Nested": {
			reason: "a guard of several", expression: "oldObject == null || (oldObject.a == 1 && oldObject.b == 1)",
		},
		"LoopWithin": {
			reason: "a guard in a macro", expression: "object.l.all(x, oldObject == null || x < oldObject.a)",
		},
		"LoopBehind": {
			reason: "a guard before it", expression: "oldObject == null || object.l.all(x, x < oldObject.a)",
		},
		"Compared": {
			reason: "null can be compared", expression: "object != oldObject && type(oldObject) == null_type",
		},
		"OtherNameIsOne": {
			reason: "a variable of the name hides it", expression: "object.l.all(oldObject, oldObject.a == 1)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule := rules.New("r", tc.expression, "m", tc.only...)
			err := rule.Err()
			if !says(err, tc.want) {
				t.Fatalf("%s\nErr(): got %v, want %q", tc.reason, err, tc.want)
			}
			if tc.want != "" || len(tc.only) > 0 {
				return
			}
			// What passes has to do so for a reason: it must not fail for an object that has all that is read of it.
			object := &unstructured.Unstructured{Object: map[string]any{
				"a": int64(1), "b": int64(1), "l": []any{map[string]any{"a": int64(1)}},
			}}
			if verdict, err := rule.Evaluate(object, nil); err != nil || verdict.Failed {
				t.Errorf("%s\nEvaluate(...): %+v, %v", tc.reason, verdict, err)
			}
		})
	}
}
