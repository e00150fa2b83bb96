package memapi

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi/internal/schemas"
)

func init() {
	// The second handler spaces errors by a clock that it read outside of any bubble: inside of one, it would sleep for
	// years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
}

// Server is the API server. It is an http.RoundTripper, to be put into a configuration: see [Config].
//
// It serves what [Server.Define], [Server.Install] and clients' own definitions tell it, and collects garbage after
// [Server.CollectGarbage]. Requests for what it does not do get the status 501 and a message with its name: query
// parameters it does not know, subresources other than the status and the scale, tables, protobuf, impersonation, lists
// of a former state. Without [Server.Extend], definitions with conversion webhooks and with rules in CEL are refused by
// Define. It differs from the real server without saying so in these points: built-in kinds are stored
// as they come, without defaults and validation, and do nothing, be they roles, quotas or configurations of webhooks;
// objects show managedFields from their first server-side apply on, then with all that was before; a namespace need not
// exist, and one that is deleted leaves its objects, unless [Server.ManageNamespaces] was called.
type Server struct {
	mu        sync.Mutex
	resources []Resource
	objects   map[schema.GroupResource]map[string]map[string]any // by "namespace/name", without apiVersion
	history   []event
	compacted int64 // the version before which nothing is known
	version   int64
	uids      int
	changed   chan struct{} // closed by every change, and replaced
	admission Admission
	reviewers []*reviewer
	schemas   map[schema.GroupResource]*schemas.Definition
	books     map[merging]*managedfields.FieldManager
	forgotten map[any]bool // the uids of objects whose managedFields a request has removed
	collector *collector   // nil if nothing is collected
	pages     map[string]page
	pageNames []string // in the order of their creation
	pageCount int
	// historyLimit is that of LimitHistory; 0 keeps everything.
	historyLimit int
	extensions   Extensions
	namespaces   *namespaceKeeper // nil if namespaces need not exist
}

var _ http.RoundTripper = (*Server)(nil)

// Resource is a kind that is served in one version.
type Resource struct {
	Group, Version, Kind string
	// Plural is the name of the resource; Singular is the kind in small letters if it is empty.
	Plural, Singular       string
	ShortNames, Categories []string
	Namespaced             bool
	// StatusSubresource gives the status an URL of its own.
	StatusSubresource bool
	// StatusFields are the only fields of the status that are kept, as by a schema; nil keeps all.
	StatusFields []string
	// Verbs are all that are usual if nil.
	Verbs []string
	// Scale gives objects a subresource for the number of replicas; some built-in kinds have it anyway.
	Scale *Scale
	// Plain is for built-in kinds that have no generation, and may be updated whatever their version: config maps,
	// secrets and pods, but not deployments.
	Plain bool
}

// qualified is the name of the resource in messages.
func (r Resource) qualified() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// groupResource is the key of the stored objects.
func (r Resource) groupResource() schema.GroupResource {
	if r.Group == eventsGroup && r.Plural == "events" {
		return schema.GroupResource{Resource: r.Plural}
	}
	return r.qualified()
}

// GroupVersionResource is what clients call it.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.groupVersion().WithResource(r.Plural)
}

func (r Resource) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// New makes a server with the kinds of [BuiltIn]; custom resource definitions serve what they define.
func New() *Server {
	s := &Server{
		objects: map[schema.GroupResource]map[string]map[string]any{}, version: 100, changed: make(chan struct{}),
		schemas: map[schema.GroupResource]*schemas.Definition{},
		books:   map[merging]*managedfields.FieldManager{}, pages: map[string]page{}, forgotten: map[any]bool{},
	}
	for _, r := range BuiltIn() {
		s.install(r)
	}
	return s
}

// Install begins to serve a resource, or serves it in another way.
func (s *Server) Install(r Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.install(r)
}

func (s *Server) install(r Resource) {
	s.drop(r.Group, r.Version, r.Plural)
	s.resources = append(s.resources, r)
	if s.objects[r.groupResource()] == nil {
		s.objects[r.groupResource()] = map[string]map[string]any{}
	}
	s.wake()
}

// Remove ends the service of a resource in all its versions, with all its objects. Watches of it end.
func (s *Server) Remove(group, plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(group, plural)
}

func (s *Server) remove(group, plural string) {
	s.drop(group, "", plural)
	delete(s.objects, schema.GroupResource{Group: group, Resource: plural})
	delete(s.schemas, schema.GroupResource{Group: group, Resource: plural})
	s.wake()
}

// drop takes the resource from the list, in one version or all.
func (s *Server) drop(group, version, plural string) {
	var kept []Resource
	for _, r := range s.resources {
		if r.Group != group || r.Plural != plural || version != "" && r.Version != version {
			kept = append(kept, r)
		}
	}
	s.resources = kept
}

func (s *Server) find(gv schema.GroupVersion, plural string) (Resource, bool) {
	for _, r := range s.resources {
		if r.groupVersion() == gv && r.Plural == plural {
			return r, true
		}
	}
	return Resource{}, false
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// next is a new resource version.
func (s *Server) next() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

func (s *Server) current() string { return strconv.FormatInt(s.version, 10) }

func timestamp() string { return time.Now().UTC().Format(time.RFC3339) }
