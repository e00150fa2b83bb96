package kopf_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// watchCutter can end the watches that are running.
type watchCutter struct {
	server     http.RoundTripper
	mu         sync.Mutex
	cancels    []context.CancelFunc
	watchCount int
}

// RoundTrip forwards the request, and makes watches cancellable.
func (c *watchCutter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") != "true" || !strings.Contains(r.URL.Path, "/widgets") {
		return c.server.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancels, c.watchCount = append(c.cancels, cancel), c.watchCount+1
	return c.server.RoundTrip(r.WithContext(ctx))
}

func (c *watchCutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.cancels {
		end()
	}
	c.cancels = nil
}

func (c *watchCutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchCount
}

// TestWatchOutlivesCredentials shows that a watch that is open while credentials expire continues, and that a watch
// that ends meanwhile resumes with the new credentials. No event is lost or repeated.
func TestWatchOutlivesCredentials(t *testing.T) {
	cases := map[string]struct {
		reason                    string
		expiresToken, cutsWatches bool
		wantLogins, wantWatches   int
	}{
		"refused": {"a running watch does not depend on its credentials", false, false, 1, 1},
		"expired": {"an expiration does not affect a running watch", true, false, 1, 1},
		"refused and ended": {
			"the next watch is refused, and repeated with new credentials", false, true, 2, 2,
		},
		"expired and ended": {"the next watch has new credentials from the beginning", true, true, 2, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				way, called, logins := &watchCutter{server: server}, &calls{}, 0
				g := &guard{server: way, token: "1"}
				op := kopf.New("test.example.org", kopf.Settings{
					AddToScheme: runtime.SchemeBuilder{addWidgets},
					Peering:     kopf.PeeringSettings{Standalone: true}, // peering would send requests all the time
				})
				op.OnLogin("token", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
					logins++
					time.Sleep(5 * time.Second)
					info := g.info(fmt.Sprint(logins))
					if c.expiresToken && logins == 1 {
						info.Expiration = time.Now().Add(2 * time.Minute)
					}
					return info, nil
				})
				kopf.For(op, &Widget{}).OnEvent("seen", func(_ context.Context, e *kopf.WatchEvent[*Widget]) error {
					called.add(fmt.Sprint(e.Type), fmt.Sprint(e.Object.Name, " ", e.Object.Spec.Size))
					return nil
				})
				stop := startCommand(t, op)
				want := map[string]int{}
				change := func(size int64) {
					for i := range 20 {
						object := numbered(i)
						object["spec"] = map[string]any{"size": size}
						server.Put(widgetResource, object)
						want[fmt.Sprint(called.kind(size), " w", i, " ", size)]++
					}
				}
				time.Sleep(time.Minute)
				change(1)
				time.Sleep(65 * time.Second) // 2 minutes since the login
				g.change("2")
				change(2)
				if c.cutsWatches {
					way.cut()
				}
				time.Sleep(time.Second)
				change(3) // during the login, if there is one
				time.Sleep(30 * time.Second)
				change(4)
				time.Sleep(10 * time.Second)
				code, stderr := stop()
				if d := cmp.Diff(want, called.all()); d != "" {
					t.Errorf("%s; -want, +got:\n%s", c.reason, d)
				}
				if way.count() != c.wantWatches || logins != c.wantLogins {
					t.Errorf("%s: %d watches and %d logins, want %d and %d",
						c.reason, way.count(), logins, c.wantWatches, c.wantLogins)
				}
				if code != 0 || strings.Contains(stderr, "ERROR") {
					t.Errorf("exit code %d, want no errors in the log:\n%s", code, stderr)
				}
			})
		})
	}
}

// kind returns the type of the event with which a widget gets the size.
func (*calls) kind(size int64) string {
	if size == 1 {
		return "ADDED"
	}
	return "MODIFIED"
}
