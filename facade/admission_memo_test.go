package kopf_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// counting returns an operator whose admission handlers and create handlers count their calls in a memo.
func counting() (op *kopf.Operator, memo *kopf.Memo[int], counts *[]int) {
	op, counts = kopf.New("test.example.org"), &[]int{}
	widgets := kopf.For(op, &Widget{})
	memo = kopf.NewMemo[int](widgets)
	count := func(w *Widget) {
		value := memo.Of(w)
		*value++
		*counts = append(*counts, *value)
	}
	for _, id := range []string{"a", "b"} {
		widgets.Validate(id, func(_ context.Context, a *Admission) error {
			count(a.Object)
			if a.HasOld {
				count(a.Old)
			}
			return nil
		})
	}
	widgets.OnCreate("fn", func(_ context.Context, c *Change) error { count(c.Object); return nil })
	return op, memo, counts
}

func newWidget(uid string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
}

// update returns a request to update the widget with this uid.
func update(uid string) map[string]any {
	asked := request(nil)
	object, _ := asked["object"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	metadata["uid"] = uid
	asked["operation"], asked["oldObject"] = "UPDATE", object
	return asked
}

// TestMemoOfCreations shows that the handlers of one creation share a memo that is not kept.
func TestMemoOfCreations(t *testing.T) {
	op, memo, counts := counting()
	for range 2 {
		verdictOf(t.Context(), t, op, request(nil))
	}
	if got := fmt.Sprint(*counts); got != "[1 2 1 2]" || memo.Len() != 0 {
		t.Errorf("all handlers of a creation share one memo, which is dropped afterwards: got %s, %d are kept",
			got, memo.Len())
	}
}

// TestMemoOfUpdates shows that the handlers of an update and all other handlers share the memo of the object.
func TestMemoOfUpdates(t *testing.T) {
	op, memo, counts := counting()
	verdictOf(t.Context(), t, op, update("uid-1"))
	verdictOf(t.Context(), t, op, update("uid-2"))
	if got := fmt.Sprint(*counts); got != "[1 2 3 4 1 2 3 4]" || memo.Len() != 2 {
		t.Errorf("handlers of an update get the memo of the object: got %s, %d are kept", got, memo.Len())
	}
	*counts = nil
	if value := memo.Of(newWidget("uid-1")); *value != 4 {
		t.Errorf("other handlers get the same memo: got %d", *value)
	}
}

// TestMemoDoesNotPileUp shows that only a limited number of memos is kept for objects that only admission handlers
// have seen, as the operator may not watch these objects.
func TestMemoDoesNotPileUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	op, memo, _ := counting()
	kept := memo.Of(newWidget("watched"))
	*kept = 100
	all := reviewerOf(t, op)
	for i := range 3000 {
		all.ask(t.Context(), t, update(fmt.Sprint("uid-", i)))
	}
	all.ask(t.Context(), t, update("watched"))
	if memo.Len() > 1001 || *kept != 104 {
		t.Errorf("unwatched memos are limited and a watched one is kept: got %d memos, value %d", memo.Len(), *kept)
	}
	if *memo.Of(newWidget("uid-2999")) != 4 || *memo.Of(newWidget("uid-0")) != 0 {
		t.Error("the memos that were used last are kept")
	}
}
