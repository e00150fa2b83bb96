package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

func newTally() *Tally {
	return &Tally{counts: Counts{Seen: map[string]int{}}, changed: make(chan struct{}, 1)}
}

// TestTally counts an object through its life: each update replaces the counts of the former state.
func TestTally(t *testing.T) {
	var bare, made, updated v1.KopfExample
	made.Status.CreateFn = &v1.Created{}
	updated.Status.CreateFn, updated.Status.UpdateFn = &v1.Created{}, &v1.Updated{Seen: "v2"}
	tally := newTally()
	steps := []struct {
		before, after *v1.KopfExample
		want          Counts
	}{
		{nil, &bare, Counts{Objects: 1, Seen: map[string]int{}}},
		{&bare, &made, Counts{Objects: 1, Created: 1, Seen: map[string]int{}}},
		{&made, &updated, Counts{Objects: 1, Created: 1, Seen: map[string]int{"v2": 1}}},
		{&updated, nil, Counts{Seen: map[string]int{}}},
	}
	for i, step := range steps {
		if step.before != nil {
			tally.count(step.before, -1)
		}
		if step.after != nil {
			tally.count(step.after, 1)
		}
		if diff := cmp.Diff(step.want, tally.Counts()); diff != "" {
			t.Errorf("step %d: -want, +got\n%s", i, diff)
		}
	}
}

// TestAwait shows that a wait ends with the cause of its context, such as the death of an operator.
func TestAwait(t *testing.T) {
	tally := newTally()
	ctx, cancel := context.WithCancelCause(t.Context())
	died := errors.New("the operator has ended")
	objects := func(c Counts) int { return c.Objects }
	ended := make(chan error)
	go func() { ended <- tally.Await(ctx, 2, objects, func(int) {}) }()
	tally.count(&v1.KopfExample{}, 1)
	cancel(died)
	if err := <-ended; !errors.Is(err, died) {
		t.Errorf("a wait for two objects continues with one: want %v, got %v", died, err)
	}
	tally.count(&v1.KopfExample{}, 1)
	if err := tally.Await(t.Context(), 2, objects, func(int) {}); err != nil {
		t.Errorf("the wait ends when both objects exist: %v", err)
	}
}
