package codec_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
)

type copiedTree struct {
	Name   string
	Next   *copiedTree
	Rows   [2][]string
	ByKey  map[string]any
	Amount resource.Quantity
}

// lockedValue has private state: a mutex.
type lockedValue struct {
	sync.Mutex
	Names []string
}

func TestDeepCopySharesNothing(t *testing.T) {
	fresh := func() *copiedTree {
		return &copiedTree{
			Name: "a", Next: &copiedTree{Name: "b"}, Rows: [2][]string{{"r"}, nil},
			ByKey: map[string]any{"list": []any{"x", &copiedTree{Name: "c"}}}, Amount: resource.MustParse("1"),
		}
	}
	original := fresh()
	copied := codec.DeepCopy(original)
	if d := cmp.Diff(fresh(), copied); d != "" {
		t.Errorf("the copy differs, -want, +got:\n%s", d)
	}
	copied.Next.Name, copied.Rows[0][0] = "changed", "changed"
	copied.ByKey["list"].([]any)[1].(*copiedTree).Name = "changed"
	copied.ByKey["list"].([]any)[0] = "changed"
	copied.Amount.Add(resource.MustParse("1"))
	if d := cmp.Diff(fresh(), original); d != "" {
		t.Errorf("a change of the copy changes the original, -want, +got:\n%s", d)
	}
}

func TestCopyShares(t *testing.T) {
	cases := map[string]struct {
		reason string
		value  any
	}{
		"Private": {reason: "a value with a lock is not copied, as only its own package can",
			value: &lockedValue{Names: []string{"a"}}},
		"Nil":    {reason: "a nil pointer is returned unchanged", value: (*copiedTree)(nil)},
		"Number": {reason: "a number is returned unchanged", value: 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := codec.DeepCopy(tc.value); got != tc.value {
				t.Errorf("%s: got %v, want %v itself", tc.reason, got, tc.value)
			}
		})
	}
}

func TestCopyOfCyclesEnds(t *testing.T) {
	loop := &copiedTree{Name: "loop"}
	loop.Next = loop
	if copied := codec.DeepCopy(loop); copied == loop || copied.Next.Next.Name != "loop" {
		t.Errorf("the copy of a cycle must be another cycle, got %p of %p", copied, loop)
	}
}
