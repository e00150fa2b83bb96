package attendance_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"
)

// An operator that is paused in all of its namespaces stays paused as a whole when one of them is dropped:
// D-peering-namespace.
func TestDroppedNamespaceInPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, scope := memapi.New(), namespaces.NewLive("a", "b")
		server.Install(namespaced)
		peerings(server, namespaced, "a", him(int64(9)))
		peerings(server, namespaced, "b", him(int64(9)))
		h, stop := attendAll(t, server.Connect(), scope)
		defer stop()
		time.Sleep(time.Minute)
		h.want("peers in both", false, map[string]bool{"a": false, "b": false})
		before := h.whole.opened()
		scope.Set([]string{"b"})
		time.Sleep(2 * time.Minute)
		h.want("a namespace less", false, map[string]bool{"a": true, "b": false})
		if got := h.whole.opened(); got != before {
			t.Errorf("the operator's gate was opened %d times in between", got-before)
		}
	})
}

// opened returns how often the gate was opened.
func (o *one) opened() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.openings
}
