package memapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

func init() {
	// The second handler limits the rate of errors with a clock that it read outside of any synctest bubble. Inside a
	// bubble, where time starts in the year 2000, it would sleep for years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
}

// Server is the API server. It is an http.RoundTripper for a client configuration: see [Config].
//
// It serves the kinds of [Server.Define], [Server.Install] and of definitions that clients create. Garbage is only
// collected after [Server.CollectGarbage].
//
// Requests for unsupported features get the status 501 and a message that names the feature: unknown query parameters,
// subresources other than status and scale, tables, protobuf, impersonation, and lists of a former state. Without
// [Server.SetExtensions], Define refuses definitions with conversion webhooks or CEL rules.
//
// The server differs from the real one without an error in these points:
//   - Objects of built-in kinds are stored without defaults and validation. They do not have any effect, including
//     roles, quotas and webhook configurations.
//   - Objects show managedFields only after their first server-side apply; these then include all earlier changes.
//   - Unless [Server.ManageNamespaces] was called, a namespace need not exist, and its objects remain when it is
//     deleted.
type Server struct {
	// mu guards all fields. It is held while a request is served, but not while reviewers or hooks run.
	mu        sync.Mutex
	resources []Resource
	// by "namespace/name", without apiVersion and kind
	objects              map[schema.GroupResource]map[string]map[string]any
	history              []event
	compactedVersion     int64 // older changes are no longer in the history
	version              int64
	lastNumber           int
	changed              chan struct{} // closed and replaced with every change
	admission            Admission
	reviewers            []*reviewer
	schemas              map[schema.GroupResource]*schemas.Definition
	fieldManagers        map[fieldManagerKey]*managedfields.FieldManager
	clearedManagedFields map[any]bool // the uids of objects whose managedFields a request has removed
	collector            *delayedWork // nil if garbage is not collected
	pages                map[string]page
	pageCount            int
	// historyLimit is set by LimitHistory; 0 keeps everything.
	historyLimit int
	extensions   Extensions
	namespaces   *delayedWork // nil if namespaces need not exist
	// ignoresShards is set by IgnoreShardSelector.
	ignoresShards bool
}

var _ http.RoundTripper = (*Server)(nil)

// Resource describes a kind that is served in one version.
type Resource struct {
	Group, Version, Kind string
	// Plural is the name of the resource. Singular defaults to the kind in lower case.
	Plural, Singular       string
	ShortNames, Categories []string
	Namespaced             bool
	// StatusSubresource makes the status a subresource.
	StatusSubresource bool
	// StatusFields lists the status fields that are stored; others are removed, as by a schema. Nil keeps all fields.
	StatusFields []string
	// Verbs lists the supported verbs in discovery; nil means all usual ones.
	Verbs []string
	// Scale adds a scale subresource. Deployments, replica sets, stateful sets and replication controllers have one
	// without it.
	Scale *apiextensionsv1.CustomResourceSubresourceScale
	// Plain marks kinds without a generation, whose objects can be updated without a resource version: config maps,
	// secrets and pods, for instance, but not deployments.
	Plain bool
}

// qualifiedName returns the name of the resource for error messages.
func (r Resource) qualifiedName() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// groupResource returns the key of the stored objects. Both APIs of Kubernetes events share their objects.
func (r Resource) groupResource() schema.GroupResource {
	if r.Group == eventsGroup && r.Plural == "events" {
		return schema.GroupResource{Resource: r.Plural}
	}
	return r.qualifiedName()
}

// GroupVersionResource returns the resource's name in the form that clients use.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.groupVersion().WithResource(r.Plural)
}

// groupVersion returns the group and the version.
func (r Resource) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// New returns a server with the kinds of [BuiltIn]. Custom resource definitions can be created on it.
func New() *Server {
	// The version does not start at 0, because a resource version of "0" has a special meaning in reads.
	s := &Server{
		objects: map[schema.GroupResource]map[string]map[string]any{}, version: 100, changed: make(chan struct{}),
		schemas:       map[schema.GroupResource]*schemas.Definition{},
		fieldManagers: map[fieldManagerKey]*managedfields.FieldManager{}, pages: map[string]page{},
		clearedManagedFields: map[any]bool{},
	}
	for _, r := range BuiltIn() {
		s.installResource(r)
	}
	return s
}

// Install starts to serve a resource, or replaces its description.
func (s *Server) Install(r Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installResource(r)
}

// installResource is [Server.Install] for callers that hold the lock. It keeps stored objects.
func (s *Server) installResource(r Resource) {
	// An existing entry is replaced; its stored objects remain.
	s.dropResource(r.Group, r.Version, r.Plural)
	s.resources = append(s.resources, r)
	if s.objects[r.groupResource()] == nil {
		s.objects[r.groupResource()] = map[string]map[string]any{}
	}
	s.wakeWatches()
}

// Remove stops serving a resource in all its versions, and removes all its objects. Its watches end.
func (s *Server) Remove(group, plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeResource(group, plural)
}

// removeResource is [Server.Remove] for callers that hold the lock. The objects vanish without events.
func (s *Server) removeResource(group, plural string) {
	s.dropResource(group, "", plural)
	delete(s.objects, schema.GroupResource{Group: group, Resource: plural})
	delete(s.schemas, schema.GroupResource{Group: group, Resource: plural})
	s.wakeWatches()
}

// dropResource removes a resource from the list, in one version, or in all if the version is empty.
func (s *Server) dropResource(group, version, plural string) {
	s.resources = slices.DeleteFunc(slices.Clone(s.resources), func(r Resource) bool {
		return r.Group == group && r.Plural == plural && (version == "" || r.Version == version)
	})
}

// findResource returns a served resource.
func (s *Server) findResource(gv schema.GroupVersion, plural string) (Resource, bool) {
	for _, r := range s.resources {
		if r.groupVersion() == gv && r.Plural == plural {
			return r, true
		}
	}
	return Resource{}, false
}

// wakeWatches wakes up all running watches.
func (s *Server) wakeWatches() {
	close(s.changed)
	// Watches that wait have a reference to the closed channel.
	s.changed = make(chan struct{})
}

// nextVersion returns a new resource version.
func (s *Server) nextVersion() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

// currentVersion returns the resource version of the latest change.
func (s *Server) currentVersion() string { return strconv.FormatInt(s.version, 10) }

// currentTimestamp returns the current time in the format of the API, which has whole seconds.
func currentTimestamp() string { return time.Now().UTC().Format(time.RFC3339) }

// Admission holds functions that change or reject a write before it is stored, such as those of a cluster's webhooks.
// They run in addition to the schemas and the server's own rules. The server is locked while they run, so they must not
// send requests to it. The objects have their apiVersion and kind.
type Admission struct {
	// Mutate changes an object before it is stored, as mutating webhooks, defaults and pruning schemas do. It must not
	// change the uid, the name or the resource version.
	Mutate func(of Resource, object map[string]any)
	// Validate rejects an object after mutation, as schemas and validating webhooks do. The client gets its error if
	// that is an apierrors.APIStatus, and an internal server error otherwise. See apierrors.NewInvalid.
	Validate func(of Resource, object map[string]any) error
}

// fieldManagerKey is the key of a cached field manager: a kind, a subresource and a schema.
type fieldManagerKey struct {
	kind        schema.GroupVersionKind
	subresource string
	// Each new state of a definition has a new schema, so this pointer also separates its states.
	schema *schemas.Version
}

// Extensions implement features of custom resource definitions that need large libraries or other processes and are
// therefore not part of this package. A definition that needs a feature whose field is nil is refused. Without
// ValidateDefinition, definitions are accepted with fewer checks.
type Extensions struct {
	// ValidateDefinition validates a definition as the real server does; was is nil for a new one. Without it, only the
	// parts that this server uses are checked.
	ValidateDefinition func(is, was *apiextensionsv1.CustomResourceDefinition) field.ErrorList
	// CompileRules compiles the CEL rules of a schema. The returned function checks a new object, or one that replaces
	// another.
	CompileRules func(structural *structuralschema.Structural) func(object, before map[string]any) field.ErrorList
	// NewConverter prepares the conversion webhook of a definition. The returned function converts one object, which
	// has its apiVersion and kind, to a version. The server waits for it, in most cases while it is locked.
	NewConverter func(crd *apiextensionsv1.CustomResourceDefinition) (
		func(object map[string]any, to string) (map[string]any, error), error,
	)
}

// delayedWork is work of the server that follows some time after changes.
type delayedWork struct {
	delay       time.Duration
	isScheduled bool // a run is scheduled or in progress
}

// page holds the remaining objects of a paginated list, also those that the list does not select. They are in the state
// of the list's first page, as in the real server.
type page struct {
	resource  schema.GroupResource
	version   string
	remaining []map[string]any
}

// Reviewer takes the place of a cluster's webhooks. It is called for the mutating webhooks, then for the validating
// ones. It returns the object to store, or nil if it does not change the object, and warnings for the client. An error
// refuses the request, like that of [Admission].Validate. The server is not locked while a reviewer runs, so a reviewer
// may send requests to it.
type Reviewer func(
	ctx context.Context, mutating bool, request *admissionv1.AdmissionRequest,
) (object []byte, warnings []string, err error)

// reviewer is one registered [Reviewer].
type reviewer struct {
	review  Reviewer
	isAlive func() bool
}

// errChangedInReview ends an attempt to serve a request whose object, or whose definition, has changed during a review.
// The request is then served again. Clients never receive it.
var errChangedInReview = errors.New("the object has changed during its review")

// event is one change. The field before is nil for an addition. For a deletion, after is nil and last is the final
// state.
type event struct {
	version                   int64
	resource                  schema.GroupResource
	before, after, finalState map[string]any
	author                    author
}
