package kopf_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// addPeer adds a peer of a higher priority with the given lifetime.
func (s *sharedPeering) addPeer(lifetime int64) {
	s.server.Edit(peerings, "", "shared", func(object map[string]any) {
		object["status"] = map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": lifetime, "lastseen": time.Now().UTC().Format(time.RFC3339),
		}}
	})
}
