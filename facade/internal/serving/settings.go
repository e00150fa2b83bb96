package serving

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// RunFlags contains the values of flags. They take precedence over the operator's settings.
type RunFlags struct {
	// Namespaces are the patterns of the namespaces to serve; none means the whole cluster. They are only valid if
	// HasScope is true. Otherwise the operator's settings decide.
	Namespaces []string
	HasScope   bool
	Peering    PeeringFlags
	Election   ElectionFlags
	// Inspection configures the debug server.
	Inspection Inspection
	// Metrics configures the server of the metrics.
	Metrics Metrics
	// HealthProbeBindAddress is the address of the health probes. Empty and "0" turn the server off.
	HealthProbeBindAddress string
	// Liveness is the address of the results of the probes; nil serves none.
	Liveness *LivenessAddress
	// Cluster selects the kubeconfig.
	Cluster ClusterConfig
	// DeletionsOnly handles only objects that are being deleted, and serves no admission.
	DeletionsOnly bool
}

// Inspection configures the debug server, which shows the state of an operator and its objects.
type Inspection struct {
	// Address is the address, such as localhost:8082. Empty and "0" turn the server off.
	Address string
	// Console and Profiling add these parts to the explanations.
	Console, Profiling bool
	// Optional makes the operator run without the server if the address is not available.
	Optional bool
}

// IsOff reports whether the server is turned off.
func (i Inspection) IsOff() bool { return i.Address == "" || i.Address == noAddress }

// UnservedPart returns the name of a part that is selected although the server is off.
func (i Inspection) UnservedPart() string {
	switch {
	case i.IsOff() && i.Console:
		return "Console"
	case i.IsOff() && i.Profiling:
		return "Profiling"
	}
	return ""
}

// PeeringFlags contains the values of the peering flags.
type PeeringFlags struct {
	// Name is the name of a mandatory peering object; empty if it is not given.
	Name string
	// Priority is the operator's priority; nil if it is not given.
	Priority *int
	// Standalone is true if the operator ignores its peers; nil if it is not given.
	Standalone *bool
}

// The values of --leader-elect.
const (
	ElectAuto   = "auto"
	ElectAlways = "true"
	ElectNever  = "false"
)

// ElectionFlags contains the values of the flags of the leader election.
type ElectionFlags struct {
	// Mode is ElectAuto, ElectAlways or ElectNever. Empty is ElectNever.
	Mode string
	// ID is the name of the Lease; empty for the default.
	ID string
	// Shards is the number of ranges of objects that the replicas share; zero leaves it to the settings.
	Shards int
}

// ManagerSettings are the settings of an operator that affect its manager.
type ManagerSettings struct {
	// Scheme contains all types of the operator.
	Scheme *runtime.Scheme
	// AnnotationPrefix is the prefix of the operator's annotations on objects.
	AnnotationPrefix string
	// Patterns are patterns of the served namespaces; none means the whole cluster.
	Patterns namespaces.Patterns
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
