package kopf

import (
	"log/slog"
	"math"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
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
