package rules_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// TestAbsent shows that reads of fields of an object that may be null are refused unless a guard precedes them.
func TestAbsent(t *testing.T) {
	cases := map[string]struct {
		reason, expression string
		options            []rules.Option
		want               string // the refused read; empty if the rule is accepted
	}{
		"Unguarded": {
			reason: "an unguarded read of oldObject is refused", expression: "object.spec.size >= oldObject.spec.size",
			want: `oldObject.spec is read in a creation as well, where oldObject is null: write "oldObject == null ` +
				`|| (...)" around it, or give Operations("UPDATE")`,
		},
		"Deletion": {
			reason:     "an unguarded read of object is refused in a rule for deletions",
			expression: "object.spec.size > 0",
			options:    []rules.Option{rules.Operations("UPDATE", "DELETE")},
			want: `object.spec is read in a deletion as well, where object is null: write "object == null || (...)" ` +
				`around it, or leave DELETE out of Operations`,
		},
		"WrongGuard": {
			reason:     "a guard for the opposite does not count",
			expression: "oldObject != null || oldObject.a == 1", want: "oldObject.a",
		},
		"GuardOfOther": {
			reason:     "a guard for the other object does not count",
			expression: "object == null || oldObject.a == 1", want: "oldObject.a",
		},
		"GuardTooWeak": {
			reason:     "an alternative that is not about null is not a guard",
			expression: "object.a == 1 || oldObject.a == 1", want: "oldObject.a",
		},
		"OneOfTwo": {
			reason:     "a read outside of the guard is refused",
			expression: "(oldObject == null || oldObject.a == 1) && oldObject.b == 1", want: "oldObject.b",
		},
		"WrongSide": {
			reason:     "a read on the null side of a choice is refused",
			expression: "oldObject == null ? oldObject.a == 1 : true", want: "oldObject.a",
		},
		"EitherSide": {
			reason:     "a read from a choice between both objects is refused",
			expression: "(object.a == 1 ? oldObject : object).b == 1", want: ".b",
		},
		"Index": {reason: "an unguarded read by index is refused",
			expression: "oldObject['a'] == 1", want: `oldObject["a"]`},
		"Has": {
			reason:     "has() reads the object and is not a guard",
			expression: "!has(oldObject.a) || oldObject.a == 1", want: "has(oldObject.a)",
		},
		"Optional": {reason: "an unguarded read of an optional field is refused",
			expression: "oldObject.?a.orValue(1) == 1", want: "oldObject.?a"},
		"Function": {reason: "a function of a null object is refused",
			expression: "size(oldObject) > 1", want: "size(oldObject)"},
		"Method": {
			reason:     "a macro over a null object is refused",
			expression: "oldObject.all(key, key != '')", want: "oldObject.all(",
		},
		"In": {reason: "the operator in on a null object is refused",
			expression: "'a' in oldObject", want: "in oldObject"},
		"Loop": {
			reason:     "an unguarded read inside of a macro is refused",
			expression: "object.l.all(x, x < oldObject.a)", want: "oldObject.a",
		},
		"LoopOver": {
			reason:     "an unguarded read in the list of a macro is refused",
			expression: "oldObject.l.exists(x, x == 1)", want: "oldObject.l",
		},
		"OtherName": {reason: "a read through the variable of a macro is refused",
			expression: "[oldObject].all(x, x.a == 1)", want: "x.a"},
		"Gathered": {
			reason:     "a read from a mapped list is refused",
			expression: "object.l.map(x, oldObject)[0].a == 1", want: ".a",
		},
		"GatheredMore": {
			reason:     "a read from a concatenated list is refused",
			expression: "(object.l + [oldObject])[0].a == 1", want: "[0].a",
		},
		"Listed": {
			reason:     "a list that contains a null object is accepted",
			expression: "[oldObject].size() == 1 && object in [oldObject, object]",
		},
		"Mapping": {reason: "a read from a mapping is refused", expression: "{'k': oldObject}.k.a == 1", want: ".k.a"},
		"Dyn": {reason: "a read through dyn() is refused",
			expression: "dyn(oldObject).a == 1", want: "dyn(oldObject).a"},
		"OnlyUpdate": {
			reason:     "a rule for updates needs no guard",
			expression: "oldObject.a == 1", options: []rules.Option{rules.Operations("UPDATE")},
		},
		"OnlyDelete": {
			reason:     "a rule for deletions needs no guard",
			expression: "oldObject.a == 1", options: []rules.Option{rules.Operations("DELETE")},
		},
		"Or": {reason: "a guard before || is accepted", expression: "oldObject == null || oldObject.a == 1"},
		"OrBehind": {
			reason: "a guard after || is accepted", expression: "oldObject.a == 1 || oldObject == null",
		},
		"OrFarBehind": {
			reason:     "a guard at the end of a longer || is accepted",
			expression: "object.a == 1 || oldObject.a == 1 || null == oldObject",
		},
		"And": {reason: "a guard before && is accepted", expression: "!(oldObject != null && oldObject.a == 1)"},
		"Not": {reason: "a negated guard is accepted", expression: "!(oldObject != null) || oldObject.a == 1"},
		"Choice": {reason: "a guard as the condition of a choice is accepted",
			expression: "oldObject != null ? oldObject.a == 1 : object.a == 1"},
		"Nested": {
			reason:     "one guard covers several reads",
			expression: "oldObject == null || (oldObject.a == 1 && oldObject.b == 1)",
		},
		"LoopWithin": {
			reason:     "a guard inside of a macro is accepted",
			expression: "object.l.all(x, oldObject == null || x < oldObject.a)",
		},
		"LoopBehind": {
			reason:     "a guard before a macro is accepted",
			expression: "oldObject == null || object.l.all(x, x < oldObject.a)",
		},
		"Compared": {
			reason:     "comparisons with a null object are accepted",
			expression: "object != oldObject && type(oldObject) == null_type",
		},
		"OtherNameIsOne": {
			reason:     "a macro variable named oldObject hides the object",
			expression: "object.l.all(oldObject, oldObject.a == 1)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule := rules.New("r", tc.expression, "m", tc.options...)
			err := rule.Err()
			if !containsError(err, tc.want) {
				t.Fatalf("%s\nErr(): got %v, want %q", tc.reason, err, tc.want)
			}
			if tc.want != "" || len(tc.options) > 0 {
				return
			}
			// An accepted rule must not fail for an object that has all fields that the rule reads.
			object := &unstructured.Unstructured{Object: map[string]any{
				"a": int64(1), "b": int64(1), "l": []any{map[string]any{"a": int64(1)}},
			}}
			if verdict, err := rule.Evaluate(object, nil); err != nil || verdict.Failed {
				t.Errorf("%s\nEvaluate(...): %+v, %v", tc.reason, verdict, err)
			}
		})
	}
}
