package kopf_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// cuttableTransport fails all requests while it is cut.
type cuttableTransport struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

func (c cuttableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errors.New("connection refused")
	}
	return c.next.RoundTrip(r)
}

// An API server that cannot be reached is logged with the handlers that wait, of all families. Its return is one line.
func TestServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(served)
		config := memapi.Config(server)
		var cut atomic.Bool
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttableTransport{next, &cut} })
		op := kopf.New("test.example.org")
		kopf.ForResource(op, "widgets").Timer("tick", time.Hour,
			func(context.Context, *kopf.Task[*kopf.Unstructured]) error { return nil })
		r := facadetest.Start(t, op, facadetest.Against(config))
		r.Ready()
		time.Sleep(time.Minute)
		cut.Store(true)
		time.Sleep(20 * time.Minute) // all watches have ended
		cut.Store(false)
		time.Sleep(10 * time.Minute)
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		lost, back := 0, 0
		for _, line := range strings.Split(r.Output(), "\n") {
			isLost, isBack := strings.Contains(line, "Cannot list or watch a resource"),
				strings.Contains(line, "Listing and watching a resource again")
			if isLost {
				lost++
			}
			if isBack {
				back++
			}
			if (isLost || isBack) && !strings.Contains(line, "handlers=[tick]") {
				t.Errorf("the line does not name the timer: %s", line)
			}
		}
		if lost == 0 || back != 1 {
			t.Errorf("%d lines of the loss, %d of the return, want some and 1:\n%s", lost, back, r.Output())
		}
	})
}
