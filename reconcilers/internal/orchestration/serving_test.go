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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/orchestration"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/resync"
)

func without(name string) func(*metav1.APIResourceList) {
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
		reason string
		own    []orchestration.SelectedHandler
		list   *metav1.APIResourceList
		play   func(c *cluster)
	}{
		"NoHandlers": {
			reason: "an operator without handlers serves nothing", list: discoverytest.ServedResources(),
			play: func(c *cluster) { c.want("after the start") },
		},
		"Order": {
			reason: "handlers of all spellings of a kind keep the order of registration, kinds start in the order of " +
				"their first handler",
			own: []orchestration.SelectedHandler{on("", "widget", "a"), on("Cluster", "", "b"), on("Widget", "", "c"),
				on("", "clusters", "d"),
				on("", "widget", "e"), on("", "widgets", "f"), on("", "Widget", "g")},
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
			own:    []orchestration.SelectedHandler{on("Widget", "", "a"), on("", "widgets", "b")},
			play: func(c *cluster) {
				c.wantSaid("both selectors wait", 2)
				c.becomes(discoverytest.ServedResources(), nil, time.Second)
				c.want("both are found", "begin widgets/status a b")
			},
		},
		"Later": {
			reason: "a kind is served when it is found, and each cause of its absence is logged once",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a"), on("Cluster", "", "b")},
			list:   discoverytest.ServedResources(without("widgets")),
			play: func(c *cluster) {
				c.want("one of two kinds", "begin clusters b")
				if said := c.said[0]; !strings.Contains(said, `"handlers"=["a"]`) {
					c.t.Errorf("expected only the waiting handlers in the line: %s", said)
				}
				if said := c.said[0]; strings.Contains(said, `"error"`) {
					c.t.Errorf("a recently missing CRD is logged as an error: %s", said)
				}
				c.wantSaid("one kind is missing", 1)
				c.becomes(discoverytest.ServedResources(without("widgets")), nil, time.Minute)
				if said := c.said[0]; !strings.Contains(said, `"error"`) {
					c.t.Errorf("a CRD that is missing for a minute is not logged as an error: %s", said)
				}
				c.wantSaid("after a minute", 1)
				c.becomes(discoverytest.ServedResources(without("widgets")), nil, time.Minute)
				c.wantSaid("after another minute", 0)
				c.becomes(discoverytest.ServedResources(without("widgets")), lost, time.Minute)
				c.becomes(discoverytest.ServedResources(without("widgets")), lost, time.Minute)
				c.wantSaid("another cause", 1)
				c.becomes(discoverytest.ServedResources(), nil, 30*time.Second)
				c.want("the kind is found", "begin widgets/status a")
			},
		},
		"GoesAndComesBack": {
			reason: "a CRD that is deleted and installed again is served without a restart of the operator",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a"), on("Cluster", "", "b")},
			list:   discoverytest.ServedResources(without("clusters")),
			play: func(c *cluster) {
				c.want("at first", "begin widgets/status a")
				c.wantSaid("the other kind is missing", 1)
				c.becomesUnfound(discoverytest.ServedResources(without("clusters"), without("widgets")), nil)
				c.want("after the removal", "end widgets")
				c.wantSaid("one line about the end and one about the missing kind", 2)
				c.becomes(discoverytest.ServedResources(without("clusters")), nil, time.Second)
				c.want("after the return", "begin widgets/status a")
			},
		},
		"GoesWithItsGroup": {
			reason: "a CRD that is removed with its group, and returns, is served again",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a")}, list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.becomesUnfound(nil, nil)
				c.want("after the removal", "begin widgets/status a", "end widgets")
				c.becomes(discoverytest.ServedResources(), nil, time.Second)
				c.want("after the return", "begin widgets/status a")
			},
		},
		"Requests": {
			reason: "a resync without changes or without an answer ends nothing",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a")}, list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.becomesUnfound(discoverytest.ServedResources(), nil)
				c.becomesUnfound(discoverytest.ServedResources(), lost)
				c.becomesUnfound(nil, lost)
				c.want("after three resyncs", "begin widgets/status a")
				c.wantSaid("after three resyncs", 0)
			},
		},
		"Changed": {
			reason: "a CRD that loses its status subresource is restarted at the next interval",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a")}, list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.becomes(discoverytest.ServedResources(without("widgets/status")), nil, resync.Interval)
				c.want("after the interval", "begin widgets/status a", "end widgets", "begin widgets a")
			},
		},
		"NoOverlap": {
			reason: "a new service waits for the end of the old one, as both would handle the same objects",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a")}, list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.lingers = make(chan struct{})
				c.becomesUnfound(discoverytest.ServedResources(without("widgets/status")), nil)
				c.want("while the last handler runs", "begin widgets/status a")
				close(c.lingers)
				c.lingers = nil
				synctest.Wait()
				c.want("after the last handler", "end widgets", "begin widgets a")
			},
		},
		"AnotherNameLater": {
			reason: "a selector that is found later joins the kind at its place in the order",
			own:    []orchestration.SelectedHandler{on("", "wheels", "a"), on("Widget", "", "b")},
			list:   discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.want("without the name", "begin widgets/status b")
				c.becomes(
					discoverytest.ServedResources(func(l *metav1.APIResourceList) {
						l.APIResources[1].SingularName = "wheels"
					}),
					nil, time.Second,
				)
				c.want("with the name", "end widgets", "begin widgets/status a b")
			},
		},
		"Exit": {
			reason: "the end waits for the last handler",
			own:    []orchestration.SelectedHandler{on("Widget", "", "a")}, list: discoverytest.ServedResources(),
			play: func(c *cluster) {
				c.lingers = make(chan struct{})
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
				c := begin(t, tc.list, tc.own...)
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
		o := orchestration.New([]orchestration.SelectedHandler{on("Widget", "", "a")}, server, &cluster{}, nil)
		go stop()
		o.Run(ctx)
	})
}

// refusing refuses to serve resources until it is free.
type refusing struct {
	*cluster
	free atomic.Bool
}

func (r *refusing) Run(ctx context.Context, a orchestration.Assignment) {
	if r.free.Load() {
		r.cluster.Run(ctx, a)
	}
}

// TestRefusedKindsAreTriedAgain shows that a kind that could not be served at first is tried again.
func TestRefusedKindsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{cluster: &cluster{}}
		ctx, stop := context.WithCancel(t.Context())
		server := discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
			return discoverytest.ServedResources(), nil
		})
		o := orchestration.New([]orchestration.SelectedHandler{on("Widget", "", "a")}, server, r, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Run(ctx)
		}()
		time.Sleep(time.Minute)
		r.free.Store(true) // as if another operator had stopped serving the kind
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(r.servedNow()) != 1 {
			t.Error("a kind is not served an hour after it is free")
		}
		stop()
		<-done
	})
}
