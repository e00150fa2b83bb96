package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/resources"
)

// cluster answers for the groups, and notes what is served and said.
type cluster struct {
	*serving
	t    *testing.T
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	list    *metav1.APIResourceList // of example.org/v1
	fails   error                   // the answer instead of it
	lingers chan struct{}           // services do not end before that, if there is one
	journal []string
	said    []string
}

// begin serves the registrations in the test's bubble, and waits for what follows at once.
func begin(t *testing.T, list *metav1.APIResourceList, registrations ...Registration) *cluster {
	return beginWith(t, list, nil, registrations...)
}

// beginWith does so with documents for selectors that say less.
func beginWith(
	t *testing.T, list *metav1.APIResourceList, server resources.Getter, registrations ...Registration,
) *cluster {
	c := &cluster{t: t, list: list, done: make(chan struct{})}
	ctx, stop := context.WithCancel(logf.IntoContext(t.Context(), funcr.New(c.say, funcr.Options{})))
	c.serving, c.stop = newServing(registrations, answers{lister(c.answer), server}), stop
	c.run = c.serveOne
	go func() {
		defer close(c.done)
		c.discover(ctx)
	}()
	synctest.Wait()
	return c
}

// answers are those of example.org/v1, and documents for all the rest.
type answers struct {
	lister
	documents resources.Getter
}

func (a answers) Get(ctx context.Context, path string) ([]byte, error) {
	if a.documents == nil || path == "/apis/example.org/v1" {
		return a.lister.Get(ctx, path)
	}
	return a.documents.Get(ctx, path)
}

func (c *cluster) answer(ctx context.Context, gv string) (*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fails != nil:
		return nil, c.fails
	case gv != "example.org/v1" || c.list == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	return c.list, nil
}

func (c *cluster) serveOne(ctx context.Context, r Resource, own []*handlers.Handler) {
	status := ""
	if r.StatusSubresource {
		status = "/status"
	}
	c.write("begin %s%s %s", r.Plural, status, strings.Join(idsOf(own), " "))
	<-ctx.Done()
	if c.lingers != nil {
		<-c.lingers
	}
	c.write("end %s", r.Plural)
}

func (c *cluster) write(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.journal = append(c.journal, fmt.Sprintf(format, args...))
}

func (c *cluster) say(_, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, line)
}

// becomes changes what the API server has, and lets everything happen that follows within the time.
func (c *cluster) becomes(list *metav1.APIResourceList, fails error, within time.Duration) {
	c.mu.Lock()
	c.list, c.fails = list, fails
	c.mu.Unlock()
	time.Sleep(within)
	synctest.Wait()
}

// doubts is what the watch of a kind that is not found does.
func (c *cluster) doubtful(list *metav1.APIResourceList, fails error) {
	c.mu.Lock()
	c.list, c.fails = list, fails
	c.mu.Unlock()
	c.doubt()
	synctest.Wait()
}

// want compares the journal since it was asked last.
func (c *cluster) want(when string, journal ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := cmp.Diff(journal, c.journal); d != "" {
		c.t.Errorf("%s: -want, +got:\n%s", when, d)
	}
	c.journal = nil
}

// wantSaid compares the number of lines since it was asked last.
func (c *cluster) wantSaid(when string, lines int) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.said) != lines {
		c.t.Errorf("%s: %d lines, want %d: %q", when, len(c.said), lines, c.said)
	}
	c.said = nil
}

// end stops it, and lets what lingers go.
func (c *cluster) end() {
	c.stop()
	if c.lingers != nil {
		close(c.lingers)
	}
	<-c.done
}

func on(kind, name, id string) Registration {
	return Registration{Selector{GroupVersion: exampleV1, Kind: kind, Name: name}, &handlers.Handler{ID: id}}
}

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
		own    []Registration
		list   *metav1.APIResourceList
		play   func(c *cluster)
	}{
		"NoHandlers": {
			reason: "an operator without handlers waits for its end", list: served(),
			play: func(c *cluster) { c.want("at once") },
		},
		"Order": {
			reason: "handlers of all spellings of a kind come in the order of registration, kinds in that of " +
				"their first",
			own: []Registration{on("", "widget", "a"), on("Cluster", "", "b"), on("Widget", "", "c"),
				on("", "clusters", "d"),
				on("", "widget", "e"), on("", "widgets", "f"), on("", "Widget", "g")},
			list: served(),
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
			own:    []Registration{on("Widget", "", "a"), on("", "widgets", "b")},
			play: func(c *cluster) {
				c.wantSaid("both wait", 2)
				c.becomes(served(), nil, time.Second)
				c.want("both are found", "begin widgets/status a b")
			},
		},
		"Later": {
			reason: "a kind is served as soon as it is found; why it is not is said once for each reason",
			own:    []Registration{on("Widget", "", "a"), on("Cluster", "", "b")}, list: served(without("widgets")),
			play: func(c *cluster) {
				c.want("one of two", "begin clusters b")
				c.wantSaid("the other is missing", 1)
				c.becomes(served(without("widgets")), nil, time.Minute)
				c.wantSaid("it is missing still", 0)
				c.becomes(served(without("widgets")), lost, time.Minute)
				c.becomes(served(without("widgets")), lost, time.Minute)
				c.wantSaid("another reason", 1)
				c.becomes(served(), nil, 30*time.Second)
				c.want("it is there", "begin widgets/status a")
			},
		},
		"GoesAndComesBack": {
			reason: "a CRD that is deleted and installed again is served again, without another start of the operator",
			own:    []Registration{on("Widget", "", "a"), on("Cluster", "", "b")}, list: served(without("clusters")),
			play: func(c *cluster) {
				c.want("at first", "begin widgets/status a")
				c.wantSaid("the other one waits", 1)
				c.doubtful(served(without("clusters"), without("widgets")), nil)
				c.want("it is gone", "end widgets")
				c.wantSaid("that it is gone, and that it is waited for", 2)
				c.becomes(served(without("clusters")), nil, time.Second)
				c.want("it is back, and found soon", "begin widgets/status a")
			},
		},
		"GoesWithItsGroup": {
			reason: "so is one whose group goes with it",
			own:    []Registration{on("Widget", "", "a")}, list: served(),
			play: func(c *cluster) {
				c.doubtful(nil, nil)
				c.want("it is gone", "begin widgets/status a", "end widgets")
				c.becomes(served(), nil, time.Second)
				c.want("it is back", "begin widgets/status a")
			},
		},
		"Doubts": {
			reason: "neither a lost connection nor a doubt without a reason ends anything",
			own:    []Registration{on("Widget", "", "a")}, list: served(),
			play: func(c *cluster) {
				c.doubtful(served(), nil)
				c.doubtful(served(), lost)
				c.doubtful(nil, lost)
				c.want("all the time", "begin widgets/status a")
				c.wantSaid("all the time", 0)
			},
		},
		"Changed": {
			reason: "a CRD that loses its status subresource is served as it is now, though no watch tells",
			own:    []Registration{on("Widget", "", "a")}, list: served(),
			play: func(c *cluster) {
				c.becomes(served(without("widgets/status")), nil, reviewInterval)
				c.want("in the end", "begin widgets/status a", "end widgets", "begin widgets a")
			},
		},
		"NoOverlap": {
			reason: "the old service ends before the new one begins: two of them would handle one object at once",
			own:    []Registration{on("Widget", "", "a")}, list: served(),
			play: func(c *cluster) {
				c.lingers = make(chan struct{})
				c.doubtful(served(without("widgets/status")), nil)
				c.want("the last handler is still running", "begin widgets/status a")
				close(c.lingers)
				c.lingers = nil
				synctest.Wait()
				c.want("it has returned", "end widgets", "begin widgets a")
			},
		},
		"AnotherNameLater": {
			reason: "a selector that is found later joins the kind, in its place",
			own:    []Registration{on("", "wheels", "a"), on("Widget", "", "b")}, list: served(),
			play: func(c *cluster) {
				c.want("without the name", "begin widgets/status b")
				c.becomes(
					served(func(l *metav1.APIResourceList) { l.APIResources[1].SingularName = "wheels" }), nil,
					time.Second,
				)
				c.want("with the name", "end widgets", "begin widgets/status a b")
			},
		},
		"Exit": {
			reason: "the end is waited for until the last handler has returned",
			own:    []Registration{on("Widget", "", "a")}, list: served(),
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
		s := newServing([]Registration{on("Widget", "", "a")},
			lister(func(ctx context.Context, _ string) (*metav1.APIResourceList, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}))
		go stop()
		s.discover(ctx)
	})
}
