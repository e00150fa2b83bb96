package serving

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/connection"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// Settings are what an operator says of its manager.
type Settings struct {
	// Scheme has all types of the operator.
	Scheme *runtime.Scheme
	// Namespaces are patterns of those that the operator is restricted to; none means the whole cluster.
	Namespaces []string
	// Patterns are the same, with regular expressions.
	Patterns namespaces.Patterns
	// CachedNamespaces are those that the manager's cache has; none means all.
	CachedNamespaces []string
	// Connection says how the cluster is connected to.
	Connection connection.Settings
	// Transport is put around that of all clients; nil is nothing.
	Transport func(http.RoundTripper) http.RoundTripper
	// Probe gives the results of the probes, StopProbes ends them; nil is without any.
	Probe      LivenessProbe
	StopProbes func()
	// Login gives the credentials for the cluster, by the ids of the handlers that have them.
	Login func(ctx context.Context, to Cluster) (map[string]*credentials.Info, error)
	// CachedReads are objects of the kinds that the manager's client reads from its cache.
	CachedReads []client.Object
	// WebhookServer is that of the manager; nil is the default one.
	WebhookServer webhook.Server
	// LogHandler gets the log; nil has it written to stderr.
	LogHandler slog.Handler
	// ExitTimeout is how long handlers may go on at the exit; the manager waits longer than that.
	ExitTimeout time.Duration
}

// Cluster is where the cluster is described.
type Cluster struct {
	// Kubeconfig is the file that has it; empty is that of the environment, as for kubectl.
	Kubeconfig string
	// Context is the name of the context there; empty is the current one.
	Context string
}
