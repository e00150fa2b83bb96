package serving

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/namespaces"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// ManagerSettings are the settings of an operator that affect its manager.
type ManagerSettings struct {
	// Scheme contains all types of the operator.
	Scheme *runtime.Scheme
	// AnnotationPrefix is the prefix of the operator's annotations on objects.
	AnnotationPrefix string
	// Namespaces are patterns of the served namespaces; none means the whole cluster.
	Namespaces []string
	// Patterns are the same patterns, with regular expressions.
	Patterns namespaces.Patterns
	// CachedNamespaces are the namespaces in the manager's cache; none means all.
	CachedNamespaces []string
	// Connection configures the connection to the cluster.
	Connection credentials.Configuration
	// Transport wraps the transport of all clients; nil wraps nothing.
	Transport func(http.RoundTripper) http.RoundTripper
	// Probe returns the results of the probes, and StopProbes ends them. Both are nil without probes.
	Probe      LivenessProbe
	StopProbes func()
	// Login returns the credentials for the cluster by the ids of the login handlers.
	Login func(ctx context.Context, to ClusterConfig) (map[string]*credentials.Info, error)
	// CachedReads are objects of the kinds that the manager's client reads from its cache.
	CachedReads []client.Object
	// WebhookServer is the webhook server of the manager; nil means the default one.
	WebhookServer webhook.Server
	// LogHandler gets the log; nil writes it to stderr.
	LogHandler slog.Handler
	// ExitTimeout limits the handlers during the exit. The manager waits longer than that.
	ExitTimeout time.Duration
}

// ClusterConfig selects a cluster in a kubeconfig file.
type ClusterConfig struct {
	// Kubeconfig is the path of the file. Empty means that of the environment, as for kubectl.
	Kubeconfig string
	// Context is the name of a context in the file. Empty means the current one.
	Context string
}

// SelectsFile reports whether the configuration or the environment selects a kubeconfig file. It can be of another
// cluster than that of the pod.
func (c ClusterConfig) SelectsFile() bool {
	return c != ClusterConfig{} || os.Getenv("KUBECONFIG") != ""
}
