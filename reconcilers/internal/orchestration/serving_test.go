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

func TestServing(t *testing.T) {
	lost := errors.New("the connection is lost")
	tests := map[string]struct {
		reason string
		own    []orchestration.Registration
		list   *metav1.APIResourceList
		play   func(c *cluster)
	}{
		"NoHandlers": {
			reason: "an operator without handlers waits for its end", list: discoverytest.Served(),
			play: func(c *cluster) { c.want("at once") },
		},
		"Order": {
			reason: "handlers of all spellings of a kind come in the order of registration, kinds in that of " +
				"their first",
			own: []orchestration.Registration{on("", "widget", "a"), on("Cluster", "", "b"), on("Widget", "", "c"),
				on("", "clusters", "d"),
				on("", "widget", "e"), on("", "widgets", "f"), on("", "Widget", "g")},
			list: discoverytest.Served(),
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
			reason: "a server that comes back between two questions does not split the handlers of one kind",
			own:    []orchestration.Registration{on("Widget", "", "a"), on("", "widgets", "b")},
			play: func(c *cluster) {
				c.wantSaid("both wait", 2)
				c.becomes(discoverytest.Served(), nil, time.Second)
				c.want("both are found", "begin widgets/status a b")
			},
		},
		"Later": {
			reason: "a kind is served as soon as it is found; why it is not is said once for each reason",
			own:    []orchestration.Registration{on("Widget", "", "a"), on("Cluster", "", "b")},
			list:   discoverytest.Served(without("widgets")),
			play: func(c *cluster) {
				c.want("one of two", "begin clusters b")
				if said := c.said[0]; !strings.Contains(said, `"handlers"=["a"]`) {
					c.t.Errorf("the handlers that wait, and no others, are named: %s", said)
				}
				if said := c.said[0]; strings.Contains(said, `"error"`) {
					c.t.Errorf("a recently applied CRD is not an error: %s", said)
				}
				c.wantSaid("the other is missing", 1)
				c.becomes(discoverytest.Served(without("widgets")), nil, time.Minute)
				if said := c.said[0]; !strings.Contains(said, `"error"`) {
					c.t.Errorf("a CRD that is missing for long is an error: %s", said)
				}
				c.wantSaid("it is missing still", 1)
				c.becomes(discoverytest.Served(without("widgets")), nil, time.Minute)
				c.wantSaid("it is missing still", 0)
				c.becomes(discoverytest.Served(without("widgets")), lost, time.Minute)
				c.becomes(discoverytest.Served(without("widgets")), lost, time.Minute)
				c.wantSaid("another reason", 1)
				c.becomes(discoverytest.Served(), nil, 30*time.Second)
				c.want("it is there", "begin widgets/status a")
			},
		},
		"GoesAndComesBack": {
			reason: "a CRD that is deleted and installed again is served again, without another start of the operator",
			own:    []orchestration.Registration{on("Widget", "", "a"), on("Cluster", "", "b")},
			list:   discoverytest.Served(without("clusters")),
			play: func(c *cluster) {
				c.want("at first", "begin widgets/status a")
				c.wantSaid("the other one waits", 1)
				c.becomesUnfound(discoverytest.Served(without("clusters"), without("widgets")), nil)
				c.want("it is gone", "end widgets")
				c.wantSaid("that it is gone, and that it is waited for", 2)
				c.becomes(discoverytest.Served(without("clusters")), nil, time.Second)
				c.want("it is back, and found soon", "begin widgets/status a")
			},
		},
		"GoesWithItsGroup": {
			reason: "so is one whose group goes with it",
			own:    []orchestration.Registration{on("Widget", "", "a")}, list: discoverytest.Served(),
			play: func(c *cluster) {
				c.becomesUnfound(nil, nil)
				c.want("it is gone", "begin widgets/status a", "end widgets")
				c.becomes(discoverytest.Served(), nil, time.Second)
				c.want("it is back", "begin widgets/status a")
			},
		},
		"Requests": {
			reason: "neither a lost connection nor a request without a reason ends anything",
			own:    []orchestration.Registration{on("Widget", "", "a")}, list: discoverytest.Served(),
			play: func(c *cluster) {
				c.becomesUnfound(discoverytest.Served(), nil)
				c.becomesUnfound(discoverytest.Served(), lost)
				c.becomesUnfound(nil, lost)
				c.want("all the time", "begin widgets/status a")
				c.wantSaid("all the time", 0)
			},
		},
		"Changed": {
			reason: "a CRD that loses its status subresource is served as it is now, though no watch tells",
			own:    []orchestration.Registration{on("Widget", "", "a")}, list: discoverytest.Served(),
			play: func(c *cluster) {
				c.becomes(discoverytest.Served(without("widgets/status")), nil, resync.Interval)
				c.want("in the end", "begin widgets/status a", "end widgets", "begin widgets a")
			},
		},
		"NoOverlap": {
			reason: "the old service ends before the new one begins: two of them would handle one object at once",
			own:    []orchestration.Registration{on("Widget", "", "a")}, list: discoverytest.Served(),
			play: func(c *cluster) {
				c.lingers = make(chan struct{})
				c.becomesUnfound(discoverytest.Served(without("widgets/status")), nil)
				c.want("the last handler is still running", "begin widgets/status a")
				close(c.lingers)
				c.lingers = nil
				synctest.Wait()
				c.want("it has returned", "end widgets", "begin widgets a")
			},
		},
		"AnotherNameLater": {
			reason: "a selector that is found later joins the kind, in its place",
			own:    []orchestration.Registration{on("", "wheels", "a"), on("Widget", "", "b")},
			list:   discoverytest.Served(),
			play: func(c *cluster) {
				c.want("without the name", "begin widgets/status b")
				c.becomes(
					discoverytest.Served(func(l *metav1.APIResourceList) { l.APIResources[1].SingularName = "wheels" }),
					nil, time.Second,
				)
				c.want("with the name", "end widgets", "begin widgets/status a b")
			},
		},
		"Exit": {
			reason: "the end is waited for until the last handler has returned",
			own:    []orchestration.Registration{on("Widget", "", "a")}, list: discoverytest.Served(),
			play: func(c *cluster) {
				c.lingers = make(chan struct{})
				c.stop()
				synctest.Wait()
				select {
				case <-c.done:
					c.t.Error("it has ended before its service")
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

// A server that never answers must not hold the exit up.
func TestServingStopsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		server := discoverytest.Lister(func(ctx context.Context, _ string) (*metav1.APIResourceList, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		o := orchestration.New([]orchestration.Registration{on("Widget", "", "a")}, server, &cluster{}, nil)
		go stop()
		o.Run(ctx)
	})
}

// refusing refuses resources for a time.
type refusing struct {
	*cluster
	free atomic.Bool
}

func (r *refusing) Run(ctx context.Context, a orchestration.Assignment) {
	if r.free.Load() {
		r.cluster.Run(ctx, a)
	}
}

// What was in the way of a kind may have gone.
func TestRefusedKindsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refusing{cluster: &cluster{}}
		ctx, stop := context.WithCancel(t.Context())
		server := discoverytest.Lister(func(context.Context, string) (*metav1.APIResourceList, error) {
			return discoverytest.Served(), nil
		})
		o := orchestration.New([]orchestration.Registration{on("Widget", "", "a")}, server, r, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Run(ctx)
		}()
		time.Sleep(time.Minute)
		r.free.Store(true) // another operator serves it no more: its category has changed
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(r.servedNow()) != 1 {
			t.Error("free for an hour, and not served")
		}
		stop()
		<-done
	})
}
