package orchestration_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

func withoutResource(name string) func(*metav1.APIResourceList) {
	return func(list *metav1.APIResourceList) {
		for i := range list.APIResources {
			if list.APIResources[i].Name == name {
				list.APIResources[i].Name += "/removed"
			}
		}
	}
}

// TestServing shows that services start, end and restart with the kinds on the API server, without splitting or
// overlapping.
func TestServing(t *testing.T) {
	lost := errors.New("the connection is lost")
	tests := map[string]struct {
		reason        string
		registrations []orchestration.SelectedHandler
		list          *metav1.APIResourceList
		play          func(c *cluster)
	}{
		"NoHandlers": {
			reason: "an operator without handlers serves nothing", list: discoverytest.ServedResources(),
			play: func(c *cluster) { c.requireJournal("after the start") },
		},
		"Order": {
			reason: "handlers of all spellings of a kind keep the order of registration, kinds start in the order of " +
				"their first handler",
			registrations: []orchestration.SelectedHandler{exampleHandler("", "widget", "a"),
				exampleHandler("Cluster", "", "b"), exampleHandler("Widget", "", "c"),
				exampleHandler("", "clusters", "d"),
				exampleHandler("", "widget", "e"), exampleHandler("", "widgets", "f"),
				exampleHandler("", "Widget", "g")},
			list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.mu.Lock()
				got := append([]string{}, c.journal...)
				c.mu.Unlock()
				if len(got) == 2 && got[0] > got[1] { // they begin at the same time
					got[0], got[1] = got[1], got[0]
				}
				if d := cmp.Diff([]string{"begin clusters b d", "begin widgets/status a c e f g"}, got); d != "" {
					c.t.Errorf("-want, +got:\n%s", d)
				}
			},
		},
		"TogetherOrNotAtAll": {
			reason: "a server that comes back between two requests does not split the handlers of one kind",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a"),
				exampleHandler("", "widgets", "b")},
			play: func(c *cluster) {
				c.requireLogLines("both selectors wait", 2)
				c.setResources(discoverytest.ServedResources(), nil, time.Second)
				c.requireJournal("both are found", "begin widgets/status a b")
			},
		},
		"Later": {
			reason: "a kind is served when it is found, and each cause of its absence is logged once",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a"),
				exampleHandler("Cluster", "", "b")},
			list: discoverytest.ServedResources(withoutResource("widgets")),
			play: func(c *cluster) {
				c.requireJournal("one of two kinds", "begin clusters b")
				if said := c.logLines[0]; !strings.Contains(said, `"handlers"=["a"]`) {
					c.t.Errorf("expected only the waiting handlers in the line: %s", said)
				}
				if said := c.logLines[0]; strings.Contains(said, `"error"`) {
					c.t.Errorf("a recently missing CRD is logged as an error: %s", said)
				}
				c.requireLogLines("one kind is missing", 1)
				c.setResources(discoverytest.ServedResources(withoutResource("widgets")), nil, time.Minute)
				if said := c.logLines[0]; !strings.Contains(said, `"error"`) {
					c.t.Errorf("a CRD that is missing for a minute is not logged as an error: %s", said)
				}
				c.requireLogLines("after a minute", 1)
				c.setResources(discoverytest.ServedResources(withoutResource("widgets")), nil, time.Minute)
				c.requireLogLines("after another minute", 0)
				c.setResources(discoverytest.ServedResources(withoutResource("widgets")), lost, time.Minute)
				c.setResources(discoverytest.ServedResources(withoutResource("widgets")), lost, time.Minute)
				c.requireLogLines("another cause", 1)
				c.setResources(discoverytest.ServedResources(), nil, 30*time.Second)
				c.requireJournal("the kind is found", "begin widgets/status a")
			},
		},
		"GoesAndComesBack": {
			reason: "a CRD that is deleted and installed again is served without a restart of the operator",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a"),
				exampleHandler("Cluster", "", "b")},
			list: discoverytest.ServedResources(withoutResource("clusters")),
			play: func(c *cluster) {
				c.requireJournal("at first", "begin widgets/status a")
				c.requireLogLines("the other kind is missing", 1)
				c.setResourcesAndResync(discoverytest.ServedResources(withoutResource("clusters"),
					withoutResource("widgets")), nil)
				c.requireJournal("after the removal", "end widgets")
				c.requireLogLines("one line about the end and one about the missing kind", 2)
				c.setResources(discoverytest.ServedResources(withoutResource("clusters")), nil, time.Second)
				c.requireJournal("after the return", "begin widgets/status a")
			},
		},
		"GoesWithItsGroup": {
			reason:        "a CRD that is removed with its group, and returns, is served again",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
			list:          discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.setResourcesAndResync(nil, nil)
				c.requireJournal("after the removal", "begin widgets/status a", "end widgets")
				c.setResources(discoverytest.ServedResources(), nil, time.Second)
				c.requireJournal("after the return", "begin widgets/status a")
			},
		},
		"Requests": {
			reason:        "a resync without changes or without an answer ends nothing",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
			list:          discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.setResourcesAndResync(discoverytest.ServedResources(), nil)
				c.setResourcesAndResync(discoverytest.ServedResources(), lost)
				c.setResourcesAndResync(nil, lost)
				c.requireJournal("after three resyncs", "begin widgets/status a")
				c.requireLogLines("after three resyncs", 0)
			},
		},
		"Changed": {
			reason:        "a CRD that loses its status subresource is restarted at the next interval",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
			list:          discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.setResources(discoverytest.ServedResources(withoutResource("widgets/status")), nil,
					discovery.ResyncInterval)
				c.requireJournal("after the interval", "begin widgets/status a", "end widgets", "begin widgets a")
			},
		},
		"NoOverlap": {
			reason:        "a new service waits for the end of the old one, as both would handle the same objects",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
			list:          discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.blockEnd = make(chan struct{})
				c.setResourcesAndResync(discoverytest.ServedResources(withoutResource("widgets/status")), nil)
				c.requireJournal("while the last handler runs", "begin widgets/status a")
				close(c.blockEnd)
				c.blockEnd = nil
				synctest.Wait()
				c.requireJournal("after the last handler", "end widgets", "begin widgets a")
			},
		},
		"AnotherNameLater": {
			reason: "a selector that is found later joins the kind at its place in the order",
			registrations: []orchestration.SelectedHandler{exampleHandler("", "wheels", "a"),
				exampleHandler("Widget", "", "b")},
			list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.requireJournal("without the name", "begin widgets/status b")
				c.setResources(
					discoverytest.ServedResources(func(l *metav1.APIResourceList) {
						l.APIResources[1].SingularName = "wheels"
					}),
					nil, time.Second,
				)
				c.requireJournal("with the name", "end widgets", "begin widgets/status a b")
			},
		},
		"Exit": {
			reason:        "the end waits for the last handler",
			registrations: []orchestration.SelectedHandler{exampleHandler("Widget", "", "a")},
			list:          discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.blockEnd = make(chan struct{})
				c.stop()
				synctest.Wait()
				select {
				case <-c.done:
					c.t.Error("the orchestrator ended before its service")
				default:
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			defer explain(t, tc.reason)
			synctest.Test(t, func(t *testing.T) {
				c := startOrchestrator(t, tc.list, tc.registrations...)
				defer c.end()
				tc.play(c)
			})
		})
	}
}

// TestServingStopsWhileItAsks shows that a server that never answers does not delay the exit.
func TestServingStopsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server := discoverytest.Lister(func(ctx context.Context, _ string) (*metav1.APIResourceList, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		o := orchestration.New([]orchestration.SelectedHandler{exampleHandler("Widget", "", "a")}, server, &cluster{},
			nil)
		go stop()
		o.Run(ctx)
	})
}

// refusingRunner refuses to serve resources until it is free.
type refusingRunner struct {
	*cluster
	free atomic.Bool
}

func (r *refusingRunner) Run(ctx context.Context, a orchestration.Assignment) {
	if r.free.Load() {
		r.cluster.Run(ctx, a)
	}
}

// TestRefusedKindsAreTriedAgain shows that a kind that could not be served at first is tried again.
func TestRefusedKindsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusingRunner{cluster: &cluster{}}
		ctx, stop := context.WithCancel(t.Context())
		server := discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
			return discoverytest.ServedResources(), nil
		})
		o := orchestration.New([]orchestration.SelectedHandler{exampleHandler("Widget", "", "a")}, server, r, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Run(ctx)
		}()
		time.Sleep(time.Minute)
		r.free.Store(true) // as if another operator had stopped serving the kind
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(r.servedResources()) != 1 {
			t.Error("a kind is not served an hour after it is free")
		}
		stop()
		<-done
	})
}
