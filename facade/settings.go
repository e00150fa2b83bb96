package kopf

import (
	"crypto/tls"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/reviews"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/tracing"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// These stand for durations in [Settings], where zero is the default.
const (
	// Never means that something does not happen, or has no limit.
	Never time.Duration = math.MinInt64
	// Immediately means no delay.
	Immediately time.Duration = math.MinInt64 + 1
)

// Settings configure an operator, for [New]: see docs/settings.md.
//
// The zero value of a field is its default. Durations are at least a millisecond; some fields accept [Never] or
// [Immediately]. Fields "not in a manager" are errors with [Operator.SetupWithManager]. The setup reports all invalid
// fields at once, by name.
type Settings struct {
	// Namespaces are names and patterns of namespaces to serve, such as "team-*,!*-test": see docs/scopes.md. Default:
	// the whole cluster. The flags -n and -A override it. Kopf: namespaces.
	Namespaces []string
	// NamespacePatterns are further namespaces: regular expressions for whole names. Kopf: namespaces.
	NamespacePatterns []*regexp.Regexp
	// NamespaceLabels is a selector that the namespaces must also match, such as "team=shop,!paused".
	NamespaceLabels string
	// AddToScheme adds Go types to those of client-go, such as v1.AddToScheme of an API package.
	AddToScheme []func(*runtime.Scheme) error
	// CachedReads are kinds that the Client of handlers reads from a cache, such as &corev1.Secret{}. Not in a manager.
	// Default: each read is a request.
	CachedReads []client.Object
	// LogHandler receives all log lines, and must not block: see docs/logging.md. Not in a manager. Default: stderr.
	LogHandler slog.Handler

	// UltimateExitingTimeout limits the exit of the process, which then ends with code 137. Only for [Main]. Default:
	// 10 minutes. Accepts [Never]. Kopf: process.ultimate_exiting_timeout.
	UltimateExitingTimeout time.Duration
	// CleanupTimeout limits all handlers of OnCleanup. The GracefulShutdownTimeout of a manager applies as well.
	// Default: 30 seconds. Accepts [Never].
	CleanupTimeout time.Duration
	// ScanningDisabled looks up kinds and namespaces only at the start, without watching CRDs. Namespaces must be names
	// then. Kopf: scanning.disabled.
	ScanningDisabled bool
	// Conditions enables [Selection.Conditions] for all handlers of the operator.
	Conditions bool
	// ConditionsDomain is a prefix for the types of these conditions, such as "backups.example.org".
	ConditionsDomain string
	// JournalObjects and JournalEntries limit the memory of explain and the console: objects, and entries of each.
	// Default: 10,000 and 20.
	JournalObjects, JournalEntries int

	Posting     PostingSettings
	Peering     PeeringSettings
	Sharding    ShardingSettings
	Watching    WatchingSettings
	Queueing    QueueingSettings
	Admission   AdmissionSettings
	Execution   ExecutionSettings
	Background  BackgroundSettings
	Networking  NetworkingSettings
	Persistence PersistenceSettings
	Tracing     TracingSettings
}

// AsKopf returns settings that take over the objects of a Kopf operator, and can hand them back. Handler ids must be
// those of the Kopf handlers, by default their function names. Copies of handled objects count as handled.
//
//	settings := kopf.AsKopf()
//	settings.Namespaces = []string{"databases"}
func AsKopf() Settings {
	return Settings{
		Peering: PeeringSettings{KopfRules: true},
		Posting: PostingSettings{ReportingComponent: "kopf", Plain: true},
		Persistence: PersistenceSettings{
			Finalizer: keys.KopfPrefix + "/KopfFinalizerMarker", AnnotationPrefix: keys.KopfPrefix,
			TrustCopies: true, KopfFormats: true,
		},
	}
}

// QueueingSettings configure how objects wait to be handled, see docs/workers.md. Kopf: settings.queueing.
type QueueingSettings struct {
	// WorkerLimit is how many objects of one kind are handled at once. A handler occupies a worker until it returns, so
	// set a [Timeout]. Default: 100. Kopf: worker_limit, unlimited.
	WorkerLimit int
	// ExitTimeout is how long handlers may continue at the exit, before their contexts end with [ErrExiting]: see
	// docs/activities.md. Default: 2 seconds. Accepts [Immediately]. Kopf: exit_timeout.
	ExitTimeout time.Duration
	// StuckTimeout is how long workers may be stuck before the health check fails, see docs/health.md. Default: 10
	// minutes. Accepts [Never].
	StuckTimeout time.Duration
	// ErrorDelays are the delays of an object after errors of the framework itself; the last one repeats. With an empty
	// list, the object waits for its next event. Default, for nil: 1 to 610 seconds. Kopf: error_delays.
	ErrorDelays []time.Duration
}

// ExecutionSettings configure the calls of handlers. Kopf: settings.execution.
type ExecutionSettings struct {
	// NoInheritedLabels stops children from inheriting labels of the object, see docs/children.md.
	NoInheritedLabels bool
	// FormerManagers are further field managers whose fields [Change.Ensure] takes over, see docs/children.md.
	FormerManagers []string
	// DefaultBackoff is the delay after ordinary errors of handlers without a [Backoff]. Default: 60 seconds. Accepts
	// [Immediately]. Kopf: default_backoff.
	DefaultBackoff time.Duration
	// Lifecycle selects the due handlers that one pass calls. Default: [InOrder]. Kopf: set_default_lifecycle, asap.
	Lifecycle Lifecycle
	// Checkpoint is how long an outcome may stay unsaved while the next handler runs. A crash repeats unsaved handlers.
	// Default: one second. Kopf saves after each handler.
	Checkpoint time.Duration
}

// BackgroundSettings configure daemons and timers. Kopf: settings.background.
type BackgroundSettings struct {
	// CancellationPolling is the interval of log lines about daemons that do not stop. Default: a minute. Accepts
	// [Never]. Kopf: cancellation_polling.
	CancellationPolling time.Duration
	// InstantExitTimeout is how long a stop may take before the next step. Default: 10 milliseconds. Kopf:
	// instant_exit_timeout.
	InstantExitTimeout time.Duration
	// MaxConcurrentDaemons is how many daemons run at once; others wait. Default: no limit.
	MaxConcurrentDaemons int
	// MaxConcurrentTicks is how many timer calls run at once; others wait. Default: 1000.
	MaxConcurrentTicks int
}

// ShardingSettings let the replicas share the objects, instead of electing one that handles all: see docs/sharding.md.
type ShardingSettings struct {
	// Shards is the number of ranges that the objects of each kind are divided into. Each range is handled by one
	// replica; a replica has several. A changed number waits until all replicas with the former one have ended.
	// Default: one replica handles all objects. The flag --shards overrides it.
	Shards int
}

// WatchingSettings configure watches. Kopf: settings.watching.
type WatchingSettings struct {
	// ServerTimeout is when the API server ends a watch, in whole seconds. Default: 5 to 10 minutes at random. Accepts
	// [Never]. Kopf: server_timeout, none.
	ServerTimeout time.Duration
	// ClientTimeout is when the operator ends a watch. Default: [Never]. Kopf: client_timeout.
	ClientTimeout time.Duration
	// ConnectTimeout limits TCP handshakes of watches. Not in a manager. Default: that of [NetworkingSettings]. Accepts
	// [Never]. Kopf: connect_timeout.
	ConnectTimeout time.Duration
	// ReconnectBackoff is the pause between two watches of a resource. Default: 0.1 seconds. Accepts [Immediately].
	// Kopf: reconnect_backoff.
	ReconnectBackoff time.Duration
	// InactivityTimeout restarts a watch after so long without an event or a bookmark. Default: 70 seconds. Accepts
	// [Never]. Kopf: inactivity_timeout.
	InactivityTimeout time.Duration
}

// NetworkingSettings configure all requests to the API server. Kopf: settings.networking.
type NetworkingSettings struct {
	// RequestTimeout limits requests of the framework, except watches. Default: 10 seconds for writes and discovery, 5
	// minutes for lists. Accepts [Never]. Kopf: request_timeout, 5 minutes.
	RequestTimeout time.Duration
	// ConnectTimeout limits TCP handshakes, also for handlers. Not in a manager. Default: 30 seconds. Accepts [Never].
	// Kopf: connect_timeout, none.
	ConnectTimeout time.Duration
	// ErrorBackoffs are delays to repeat a failed request on the spot, before [QueueingSettings].ErrorDelays. Default:
	// none. Kopf: error_backoffs, 1 to 21 seconds.
	ErrorBackoffs []time.Duration
	// EnforceRetryAfter lets the API server also shorten these delays. Kopf: enforce_retry_after.
	EnforceRetryAfter bool
	// TrustEnv uses proxies of the environment, such as HTTPS_PROXY. Not in a manager. Kopf: trust_env.
	TrustEnv bool
}

// PersistenceSettings configure what the operator stores on objects, see docs/storages.md. Kopf: settings.persistence.
type PersistenceSettings struct {
	// Finalizer is the name of the finalizer. Objects keep one of a former name. Default: "<name>/finalizer"; with
	// [AsKopf], that of Kopf. Kopf: finalizer.
	Finalizer string
	// AnnotationPrefix is the domain of annotations. With another prefix, all objects are new. Default: the operator's
	// name; with [AsKopf], kopf.zalando.org. Kopf: prefix.
	AnnotationPrefix string
	// DiffbaseStorage stores the last-handled configuration, such as diffbase.Status{}. With another storage, all
	// objects are new, unless it is a [diffbase.Multi]. Default: an annotation. Kopf: diffbase_storage.
	DiffbaseStorage diffbase.Storage
	// ProgressStorage stores the progress of unfinished handlers, such as progress.Status{}. Default: annotations.
	// Kopf: progress_storage.
	ProgressStorage progress.Storage
	// IgnoredFields are fields whose changes are ignored, such as "spec.replicas". A DiffbaseStorage has its own. Kopf:
	// ignored_fields.
	IgnoredFields []string
	// DigestKey is the secret key of digests, best 32 random bytes: see [Selection.Redacted]. Default, for nil: the uid
	// of the object, which is not secret.
	DigestKey []byte
	// FormerDigestKeys are former keys. Objects with digests of a lost key count as updated.
	FormerDigestKeys [][]byte
	// TrustCopies treats copies of handled objects as handled, as Kopf does. True with [AsKopf].
	TrustCopies bool
	// KopfFormats stores only formats that Kopf can read. True with [AsKopf].
	KopfFormats bool
}

// PostingSettings configure Kubernetes events, see docs/events.md. Kopf: settings.posting.
type PostingSettings struct {
	// Disabled stops all Kubernetes events. Kopf: enabled, inverted.
	Disabled bool
	// Loggers also posts log lines of handlers, with the reason Logging. Kopf: loggers.
	Loggers bool
	// Level is the lowest level that is posted. Kopf: level.
	Level slog.Level
	// ReportingComponent is the source of events. Default: the operator's name; with [AsKopf], kopf. Kopf:
	// reporting_component.
	ReportingComponent string
	// ReportingInstance is the instance of the source. Default: dev; with Sharding, the pod. Kopf: reporting_instance.
	ReportingInstance string
	// EventNamePrefix begins generated names. Default: kopf-event-. Kopf: event_name_prefix.
	EventNamePrefix string
	// Plain posts each event separately, without limits. True with [AsKopf].
	Plain bool
	// PerSecond limits requests for events. Default: 10.
	PerSecond int
}

// PeeringSettings configure operators that share objects, see docs/peering.md. In a manager, peering needs a Name,
// Mandatory or [Operator.PeeringLock]. Kopf: settings.peering.
type PeeringSettings struct {
	// Name is the name of the peering object, which the operator does not create. Default: the operator's name;
	// "default" with KopfRules. Kopf: name.
	Name string
	// Stealth omits log lines about keep-alives. Kopf: stealth.
	Stealth bool
	// Priority decides who acts: operators of lower priorities pause. Kopf: priority.
	Priority int
	// Lifetime is how long a keep-alive lasts: whole seconds, at least 3. Default: 60 seconds. Kopf: lifetime.
	Lifetime time.Duration
	// Mandatory makes the operator wait for a peering object. Kopf: mandatory.
	Mandatory bool
	// Standalone disables peering. Kopf: standalone.
	Standalone bool
	// Clusterwide uses a ClusterKopfPeering even with Namespaces. Kopf: clusterwide.
	Clusterwide bool
	// Identity names the process among its peers. Default: $POD_ID, or user@host/time/xyz. Kopf: identity.
	Identity string
	// KopfRules follows Kopf where the rules differ, such as for equal priorities. True with [AsKopf].
	KopfRules bool
	// ClockSkew is how far clocks of operators may differ. Default: 2 minutes. Accepts [Immediately].
	ClockSkew time.Duration
	// TakeOverWait is how long the operator waits before it takes over from Kopf's operators. Default: 5 seconds.
	// Accepts [Immediately].
	TakeOverWait time.Duration
	// PauseTimeout is how long handlers may continue in a pause, before their contexts end with [ErrPaused]. Default:
	// 30 seconds; with [ShardingSettings], 10 seconds at most. Accepts [Immediately].
	PauseTimeout time.Duration
}

// TracingSettings configure OpenTelemetry traces, see docs/traces.md.
type TracingSettings struct {
	// Provider creates spans, such as a TracerProvider of the SDK, and is not shut down. Default: no traces.
	Provider trace.TracerProvider
	// Apart makes each attempt a trace, linked to the first one. Default: one trace for all attempts.
	Apart bool
}

// Transport traces requests with the context of a handler. It is for a manager; [Main] and [Operator.Run] do not need
// it.
//
//	config.Wrap(settings.Tracing.Transport)
func (s TracingSettings) Transport(next http.RoundTripper) http.RoundTripper {
	return tracing.TraceRequests(s.Provider, next)
}

// transportWrapper returns Transport for a rest.Config, or nil without a Provider.
func (s TracingSettings) transportWrapper() func(http.RoundTripper) http.RoundTripper {
	if s.Provider == nil {
		return nil
	}
	return s.Transport
}

// AdmissionSettings configure the webhook server and the webhook configurations, see docs/admission.md. Kopf:
// settings.admission.
//
// The API server needs one of Service, URL, DetectCluster and Tunnel. The webhook server needs CertificateDir, Secret,
// SelfSigned or Insecure, unless it is a Server or a manager's. Not in a manager: DetectCluster, Tunnel, Port, Address,
// SelfSigned, Insecure, Server, ClientCA, TLSOpts.
type AdmissionSettings struct {
	// Managed names the two webhook configurations that the operator maintains. Default: it writes none. Kopf: managed.
	Managed string
	// FinalizerOnCreate adds the operator's finalizer by a webhook to new objects, which saves a write each. The
	// operator must handle these objects. Not with [AsKopf].
	FinalizerOnCreate bool
	// WithoutMatchConditions omits matchConditions, by which the API server evaluates filters.
	WithoutMatchConditions bool
	// ExcludedNamespaces are names and patterns of namespaces without reviews. Default, for nil: the operator's own
	// namespace, unless Namespaces name it; none with [AsKopf].
	ExcludedNamespaces []string
	// URL is the address of the webhook server, such as "https://192.168.1.5:9443". Kopf: host, port, path.
	URL string
	// Service leads to the webhook server, such as "databases-system/webhook:8443". Default port: 443.
	Service string
	// DetectCluster finds this machine's address for k3d, minikube or Docker Desktop. Other clusters need a URL or
	// Tunnel. Kopf: WebhookAutoServer, WebhookAutoTunnel.
	DetectCluster bool
	// Tunnel connects the cluster to the webhook server, such as webhooks/tunnels/ngrok or a [tunnels.Func]. Kopf: a
	// server that is an asynchronous generator.
	Tunnel tunnels.Tunnel
	// Port is the port of the webhook server. Default: 9443. Kopf: port.
	Port int
	// Address is the local address of the webhook server. Default: all, or "127.0.0.1" with Insecure or Tunnel alone.
	// Kopf: addr.
	Address string
	// CertificateDir is a directory with tls.crt, tls.key and optionally ca.crt, which are reloaded. Kopf: certfile,
	// pkeyfile, cafile.
	CertificateDir string
	// Secret is where the operator keeps and renews its certificate, such as "databases-system/webhook-certificate",
	// which is the default for the Service "databases-system/webhook", but not in a manager.
	Secret string
	// ExtraHosts are further hosts in certificates of the operator, such as a proxy. Kopf: extra_sans.
	ExtraHosts []string
	// SelfSigned creates a certificate in memory, for development. Not with Service. Kopf: servers without certfile.
	SelfSigned bool
	// Insecure serves plain HTTP, for a proxy that terminates TLS. Kopf: insecure.
	Insecure bool
	// Server replaces the webhook server, and must serve its WebhookMux. Kopf: server.
	Server webhook.Server
	// ClientCA is a PEM file of CAs; client certificates of others are rejected. Kopf: verify_cafile.
	ClientCA string
	// RequireClientCertificate rejects clients without a certificate. Kopf: verify_mode=ssl.CERT_REQUIRED.
	RequireClientCertificate bool
	// TLSOpts change the tls.Config of the webhook server. Kopf: context.
	TLSOpts []func(*tls.Config)
	// CAFile is a PEM file with the CA of a certificate that is not from these settings. Kopf: cafile.
	CAFile string
	// CABundle is the content of such a file. Kopf: cadata.
	CABundle []byte
	// DumpCA is a file that receives the CA. Kopf: cadump.
	DumpCA string
}

// asReviewSettings returns the settings with their checks. The types have the same fields.
func (a *AdmissionSettings) asReviewSettings() *reviews.ReviewSettings {
	return (*reviews.ReviewSettings)(a)
}
