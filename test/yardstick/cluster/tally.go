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

// Counts tell how many objects there are, and how far an operator is with them.
type Counts struct {
	Objects int
	// Created are those whose creation was handled.
	Created int
	// Seen are those whose last handled update had this value of spec.field.
	Seen map[string]int
}

// Tally counts the objects of a kind as their watch tells of them.
type Tally struct {
	mu      sync.Mutex
	counts  Counts
	changed chan struct{} // holds a token if something was counted since
}

// stalled is how long nothing may be counted before a wait is given up.
const stalled = 2 * time.Minute

// watch counts the objects until the context ends. Of their specs and managed fields nothing is kept, so that the
// yardstick itself stays small beside what it measures.
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
	go func() { _ = objects.Start(ctx) }() // whoever asks for the informer below gets the error
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

// Counts are those of now.
func (t *Tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.Seen = maps.Clone(c.Seen)
	return c
}

// Await waits until a number has become what is wanted, and tells of it every two seconds. Only one may wait at a
// time.
//
// # Errors
//
// The context has ended, with its cause; or nothing has changed for two minutes.
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
			if time.Since(last) > stalled {
				return fmt.Errorf("nothing has happened for %s, with %d of %d objects", stalled, now, want)
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d objects, with %d: %w", want, now, context.Cause(ctx))
		}
	}
}
