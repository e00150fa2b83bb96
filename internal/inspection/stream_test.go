package inspection_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/inspection"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/kits/journaltest"
)

// client is one end of a connection in virtual time.
type client struct {
	http.ResponseWriter
	stuck        bool // it does not receive anything
	deadline     time.Time
	readDeadline *time.Time // the deadline for its requests

	mu       sync.Mutex
	received []byte
}

func (c *client) SetWriteDeadline(at time.Time) error { c.deadline = at; return nil }
func (c *client) SetReadDeadline(at time.Time) error  { c.readDeadline = &at; return nil }
func (c *client) Flush()                              {}
func (c *client) Write(data []byte) (int, error) {
	if c.stuck {
		if c.deadline.IsZero() {
			select {} // blocks
		}
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, data...)
	return len(data), nil
}

// takeEventNames returns the names of the events received since the last call.
func (c *client) takeEventNames() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, found := range regexp.MustCompile(`(?m)^event: (.*)$`).FindAllSubmatch(c.received, -1) {
		all = append(all, string(found[1]))
	}
	c.received = nil
	return all
}

// TestSlowClient shows that a client that does not read is disconnected after ten seconds.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{ResponseWriter: httptest.NewRecorder(), stuck: true}
		page := inspection.NewConsole(journal.New(journal.RetentionLimits{}), nil)
		began := time.Now()
		page.ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/console/events", nil))
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("disconnected after %s, want 10s", took)
		}
	})
}

// TestPace shows that a page gets changes at most once a second, and a heartbeat every 15 seconds without changes.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, j := &client{ResponseWriter: httptest.NewRecorder()}, journal.New(journal.RetentionLimits{})
		page := inspection.NewConsole(j, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			page.ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/console/events", nil).WithContext(ctx))
		}()
		synctest.Wait()
		after := func(when string, wait time.Duration, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, c.takeEventNames()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", when, diff)
			}
			time.Sleep(wait)
			synctest.Wait()
		}
		after("at first", 3*time.Second-time.Millisecond, "operator", "objects")
		for range 1000 {
			journaltest.StartStory(j, widgets, "default", "one").RecordEvent("MODIFIED")
			time.Sleep(2 * time.Millisecond)
		}
		synctest.Wait()
		after("two seconds and a thousand events later", time.Minute, "objects", "objects")
		after("a quiet minute later", 0, "objects", "beat", "beat", "beat")
		cancel()
		<-ended
		if c.readDeadline == nil || !c.readDeadline.IsZero() {
			t.Errorf("the read deadline of the server is not removed for a stream: %v", c.readDeadline)
		}
	})
}

// TestHeartbeat shows that a page gets an event at least every 15 seconds, as it regards a silent stream as broken.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{ResponseWriter: httptest.NewRecorder()}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		page := inspection.NewConsole(journal.New(journal.RetentionLimits{}), nil)
		go page.ServeHTTP(c, httptest.NewRequest(http.MethodGet, "/console/events", nil).WithContext(ctx))
		synctest.Wait()
		c.takeEventNames()
		for _, want := range []string{"beat", "beat"} {
			time.Sleep(15 * time.Second)
			synctest.Wait()
			if diff := cmp.Diff([]string{want}, c.takeEventNames()); diff != "" {
				t.Errorf("after 15 quiet seconds (-want, +got):\n%s", diff)
			}
		}
		cancel()
		synctest.Wait()
	})
}
