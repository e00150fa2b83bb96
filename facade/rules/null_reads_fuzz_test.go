package rules_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// writer writes random conditions. Each field of object that they read exists, so a condition that fails in a creation
// fails because oldObject is null.
type writer struct{ *rand.Rand }

func (w writer) condition(depth int) string {
	if depth == 0 {
		return w.leaf()
	}
	one := func() string { return w.condition(depth - 1) }
	switch w.IntN(9) {
	case 0, 1:
		return fmt.Sprintf("(%s && %s)", one(), one())
	case 2, 3:
		return fmt.Sprintf("(%s || %s)", one(), one())
	case 4:
		return fmt.Sprintf("!(%s)", one())
	case 5:
		return fmt.Sprintf("(%s ? %s : %s)", one(), one(), one())
	case 6:
		return fmt.Sprintf("object.l.%s(x, x.a == 1 || %s)", w.oneOf("all", "exists", "exists_one"), one())
	case 7:
		return fmt.Sprintf("(%s ? oldObject : object).a == %d", one(), w.IntN(2))
	default:
		return fmt.Sprintf("object.l.map(x, %s, oldObject).size() == object.l.filter(x, %s).size()", one(), one())
	}
}

func (w writer) leaf() string {
	return w.oneOf(
		"oldObject == null", "oldObject != null", "null == dyn(oldObject)", "oldObject.a == 1", "has(oldObject.a)",
		"object.a == 1", "object.a != 1", "object == oldObject", "type(oldObject) == null_type", "true", "false",
		"[oldObject, object].all(x, x.a == 1)", "[oldObject].exists(x, x == null)", "[object].all(x, x != oldObject)",
	)
}

func (w writer) oneOf(of ...string) string { return of[w.IntN(len(of))] }

// FuzzAbsent searches for conditions that pass the check for guards and fail in a creation.
func FuzzAbsent(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"a": int64(1), "l": []any{map[string]any{"a": int64(1)}, map[string]any{"a": int64(2)}},
	}}
	f.Fuzz(func(t *testing.T, seed uint64) {
		expression := writer{rand.New(rand.NewPCG(seed, 0))}.condition(1 + int(seed%4))
		rule := rules.New("r", expression, "m")
		if err := rule.Err(); err != nil {
			if !strings.Contains(err.Error(), "oldObject is null") {
				t.Errorf("%s: the only error may be about a null oldObject, got %v", expression, err)
			}
			return
		}
		if verdict, err := rule.Evaluate(object, nil); err != nil || verdict.Failed {
			t.Errorf("%s: a rule without an error must not fail in a creation: %+v, %v", expression, verdict, err)
		}
	})
}
