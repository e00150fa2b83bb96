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

// These stand for durations in [Settings], as zero is the default there. A setting says which of them it takes.
const (
	// Never is for something that does not happen, or has no limit.
	Never time.Duration = math.MinInt64
	// Immediately is for no delay at all.
	Immediately time.Duration = math.MinInt64 + 1
)

// Settings are those of a whole operator, for [New]. They have Kopf's sections, and docs/settings.md has all of Kopf's
// settings with what has become of them.
//
// The zero value of a field is its documented default. So booleans are false by default, and for no limit or no delay
// there are [Never] and [Immediately]. Durations are a millisecond or longer. A nil list is the same as an empty one
// unless the field says otherwise. Mistakes are told by the set-up, all at once, with the name of the field; so is a
// field of which the feature is not served yet.
type Settings struct {
	// Namespaces restrict the operator to objects in some namespaces: by their names, or by patterns such as "team-*",
	// "ns[0-9]?" and "[!a-c]*", each of which matches whole names. A pattern may take away, with "!", and give back of
	// that, after commas: "team-*, !*-test, team-1-test"; "!kube-*" takes away from all. What one element of the list
	// matches is served; commas do not separate names. Objects outside of any namespace are handled nevertheless.
	// Patterns need the right to list and watch namespaces, see docs/scopes.md. Default: the whole cluster. The flags
	// -n and -A of [Main] override it, and handlers of [Operator.OnStartup] have the last word. Kopf: the argument
	// namespaces of kopf.operator.
	Namespaces []string
	// NamespacePatterns are patterns as Namespaces has them, beside those, as regular expressions: each matches whole
	// names. Default: none. The flags -n and -A override it, too. Kopf: the argument namespaces of kopf.operator.
	NamespacePatterns []*regexp.Regexp
	// NamespaceLabels restrict the operator to namespaces whose labels match the selector, such as "team=shop,!paused".
	// Of those that Namespaces and NamespacePatterns match, or of all, the operator serves the ones that have the
	// labels, as these come and go. It needs the right to list and watch namespaces, see docs/scopes.md. Default: the
	// labels do not matter. The flags -n and -A override it, too.
	NamespaceLabels string
	// AddToScheme makes Go types known, so that [For] finds their kinds: it has the AddToScheme of every API package
	// that is handled or read through clients, such as runtime.SchemeBuilder{v1.AddToScheme}. The types of client-go
	// are known without it. Under SetupWithManager the functions are applied to the manager's scheme.
	AddToScheme []func(*runtime.Scheme) error
	// CachedReads are the kinds that the Client of handlers reads from a cache, given by an empty object of each, such
	// as &corev1.Secret{}. Under [Main] only: in a manager that the project makes, it is a matter of the manager. A
	// cached read needs no request, but may be a little old; and it has the namespaces that the operator is restricted
	// to by their names, no other ones; with patterns, it has all. The operator must be allowed to list and watch the
	// kind in all of these: otherwise, reads of it fail. Default: none, so each read is a request for what the API
	// server has now.
	CachedReads []client.Object
	// LogHandler gets all lines of the log, with their values as attributes, such as slog.NewJSONHandler(os.Stderr,
	// nil). Under [Main] only: in a manager that the project makes, give logr.FromSlogHandler(handler) to it as its
	// Logger. The handler decides what is logged, and what lines look like; --quiet drops infos before it, and only
	// with --debug it gets what the libraries below say of themselves. Warnings have the level Warn, and what is shown
	// with --verbose has the level Debug. docs/logging.md has the keys. It must not block, as whoever logs waits for
	// it; errors and panics of it are told on stderr, once. The handlers of OnStartup log by it already, so changing it
	// there is an error. Default: stderr, as the flags say.
	LogHandler slog.Handler

	// UltimateExitingTimeout limits the exit of the process, from the first signal or from the error that ends it. After
	// that, the process ends with the exit code 137. [Never] is no limit. Only for [Main]. Default: 10 minutes. Kopf:
	// process.ultimate_exiting_timeout.
	UltimateExitingTimeout time.Duration
	// CleanupTimeout limits the handlers of OnCleanup, with all attempts. After that, their contexts end, and those that
	// do not return are abandoned after 5 seconds. A manager that the project makes has its own limit, the
	// GracefulShutdownTimeout. [Never] is no limit. Default: 30 seconds.
	CleanupTimeout time.Duration
	// ScanningDisabled looks for kinds and namespaces only once, at the start, and does not watch CRDs: for operators
	// without the permission. Kinds that are created later are not served before the next start, which is logged.
	// Namespaces must be named in full. Default: false. Kopf: scanning.disabled.
	ScanningDisabled bool
	// Conditions turns on the conditions of [Selection.Conditions] for all objects of all handlers, except those of
	// admission and indices. Default: false. Kopf: none.
	Conditions bool
	// ConditionsDomain is the prefix of the types of these conditions, for an operator that handles the same objects as
	// another one: "backups.example.org" makes "backups.example.org/Ready". With it, status.observedGeneration is not
	// written. Default: no prefix, as kubectl and kstatus expect. Kopf: none.
	ConditionsDomain string
	// JournalObjects and JournalEntries limit the memory of explain and the console: the number of objects, of a kilobyte
	// or two each, and the number of entries of each object. The oldest are dropped. Default: 10,000 and 20. Kopf: none.
	JournalObjects, JournalEntries int

	Posting     PostingSettings
	Peering     PeeringSettings
	Watching    WatchingSettings
	Queueing    QueueingSettings
	Admission   AdmissionSettings
	Execution   ExecutionSettings
	Background  BackgroundSettings
	Networking  NetworkingSettings
	Persistence PersistenceSettings
	Tracing     TracingSettings
}

// AsKopf gives the settings of a take-over: the operator remembers as Kopf's operators do by default, with the
// annotations of kopf.zalando.org and the finalizer kopf.zalando.org/KopfFinalizerMarker. So it takes over the objects
// of a Kopf operator, with every handler where it was, and can hand them back. Ids must be those of the Kopf handlers:
// their function names, by default. Further fields are set on what it returns. It peers by Kopf's rules.
//
// There is one price: a copy of a handled object, annotations included, is taken for handled, as Kopf does.
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
