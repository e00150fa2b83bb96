package children

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// turns lets one call at a time work on the children of one parent: two sets are never compared while both change, and
// nothing is applied while the children of a deleted parent are released.
type turns struct {
	mu      sync.Mutex
	parents map[types.UID]*turn
}

type turn struct {
	free  chan struct{} // holds one value while nobody works
	users int           // who work or wait
}

// enter waits for the turn of the caller, who calls leave at the end of it.
func (t *turns) enter(ctx context.Context, parent types.UID) (leave func(), err error) {
	mine := t.join(parent)
	select {
	case <-mine.free:
		return func() {
			mine.free <- struct{}{}
			t.part(parent, mine)
		}, nil
	case <-ctx.Done():
		t.part(parent, mine)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) join(parent types.UID) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.parents[parent]
	if mine == nil {
		mine = &turn{free: make(chan struct{}, 1)}
		mine.free <- struct{}{}
		if t.parents == nil {
			t.parents = map[types.UID]*turn{}
		}
		t.parents[parent] = mine
	}
	mine.users++
	return mine
}

func (t *turns) part(parent types.UID, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.parents, parent)
	}
}
