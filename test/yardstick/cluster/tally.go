package cluster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

// Counts contains the number of objects and the progress of an operator.
type Counts struct {
	Objects int
	// Created counts the objects whose creation was handled.
	Created int
	// Seen counts the objects by the value of spec.field in the last handled update.
	Seen map[string]int
}

// Tally counts the objects of a kind from their watch events.
type Tally struct {
	mu      sync.Mutex
	counts  Counts
	changed chan struct{} // holds a token if something was counted since
}

// stallTimeout is how long a wait continues without any change of the counts.
const stallTimeout = 2 * time.Minute

// watch counts the objects until the context ends. It drops their specs and managed fields so that the yardstick itself
// stays small.
func watch(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) (*Tally, error) {
	objects, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: func(o any) (any, error) {
		if example, ok := o.(*v1.KopfExample); ok {
			example.Spec, example.ManagedFields, example.Annotations = v1.Spec{}, nil, nil
		}
		return o, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("watching the objects: %w", err)
	}
	t := &Tally{counts: Counts{Seen: map[string]int{}}, changed: make(chan struct{}, 1)}
	go func() { _ = objects.Start(ctx) }() // GetInformer below returns the error
	informer, err := objects.GetInformer(ctx, &v1.KopfExample{})
	if err != nil {
		return nil, fmt.Errorf("watching the objects: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.count(o, 1) },
		UpdateFunc: func(old, o any) { t.count(old, -1); t.count(o, 1) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			t.count(o, -1)
		},
	})
	return t, err
}

func (t *Tally) count(o any, by int) {
	example, ok := o.(*v1.KopfExample)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Objects += by
	if example.Status.CreateFn != nil {
		t.counts.Created += by
	}
	if updated := example.Status.UpdateFn; updated != nil {
		if t.counts.Seen[updated.Seen] += by; t.counts.Seen[updated.Seen] == 0 {
			delete(t.counts.Seen, updated.Seen)
		}
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Counts returns the present counts.
func (t *Tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.Seen = maps.Clone(c.Seen)
	return c
}

// Await waits until a number reaches the wanted value. It calls its last argument with the present number every two
// seconds. Calls must not overlap.
//
// # Errors
//
// The cause of the context that has ended; or an error if nothing has changed for two minutes.
func (t *Tally) Await(ctx context.Context, want int, number func(Counts) int, tell func(now int)) error {
	told := time.NewTicker(2 * time.Second)
	defer told.Stop()
	for last := time.Now(); ; {
		now := number(t.Counts())
		if now == want {
			return nil
		}
		select {
		case <-t.changed:
			last = time.Now()
		case <-told.C:
			tell(now)
			if time.Since(last) > stallTimeout {
				return fmt.Errorf("nothing has happened for %s, with %d of %d objects", stallTimeout, now, want)
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d objects, with %d: %w", want, now, context.Cause(ctx))
		}
	}
}
