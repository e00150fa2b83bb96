package reconcilers_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// journal is what has happened, in order, from any goroutine.
type journal struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (j *journal) add(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, time.Since(j.began).Round(time.Second).String()+" "+what)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "; ")
}

// A deletion waits for its daemons, and delete handlers are not called again for that, whatever comes in between.
func TestDeletionsWaitForDaemons(t *testing.T) {
	stubborn := func(ctx context.Context, _ *handlers.Call) error {
		<-ctx.Done()
		time.Sleep(30 * time.Second)
		return nil
	}
	tests := map[string]struct {
		reason     string
		background handlers.Background
		meanwhile  func(p people, again func())
		want       string
	}{
		"Lingering": {"it is waited for, as long as it takes", handlers.Background{}, nil, "10s delete; 40s gone"},
		"Abandoned": {
			"or as long as it may take", handlers.Background{CancelTimeout: 15 * time.Second}, nil,
			"10s delete; 25s gone",
		},
		"Edited": {
			"what changes in between does not matter", handlers.Background{},
			func(p people, _ func()) { p.label("ConfigMap", "c", "x") }, "10s delete; 40s gone",
		},
		"Restarted": {
			"another process has no daemons to wait for", handlers.Background{CancelTimeout: time.Second},
			func(_ people, again func()) { again() }, "10s delete; 20s gone",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, j := memapi.New(), &journal{}
				p := newPeople(t, server)
				p.create("ConfigMap", "c")
				j.began = time.Now()
				start := func() (stop func()) {
					return operateAll(t, server, reconcilers.Options{},
						to(t, "configmaps", daemon("d", tc.background, stubborn)),
						to(t, "configmaps", &handlers.Handler{ID: "del", Reason: cause.Delete,
							Call: func(context.Context, *handlers.Call) error {
								j.add("delete")
								return nil
							}}))
				}
				stop := start()
				time.Sleep(10 * time.Second)
				p.remove("ConfigMap", "c")
				if tc.background.CancelTimeout == time.Second {
					time.Sleep(500 * time.Millisecond)
				} else {
					time.Sleep(10 * time.Second)
				}
				if tc.meanwhile != nil {
					tc.meanwhile(p, func() {
						stop()
						time.Sleep(time.Until(j.began.Add(20 * time.Second)))
						stop = start()
					})
				}
				for range 300 {
					if p.count("ConfigMap") == 0 {
						j.add("gone")
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				stop()
				time.Sleep(time.Minute)
				if d := cmp.Diff(tc.want, j.String()); d != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
				}
			})
		})
	}
}
