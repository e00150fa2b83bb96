package children

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// application is a child of a watched kind as it was applied last in this process.
type application struct {
	child   declared
	uid     types.UID
	version string
	became  fingerprint // of what it became
	outcome outcome     // how it was seen to end, if it is made until it is done

	drift    drift
	seen     string    // the version that has drifted
	repaired time.Time // when that was tried last
	times    int       // in a row
}

// drift is what happened to a child that nobody has declared so.
type drift string

const (
	deleted drift = "deleted"
	edited  drift = "changed"
)

// applications are those of all parents, by the names of the records of their handlers. The zero value is ready to use.
type applications struct {
	mu       sync.Mutex
	parents  map[types.UID]map[string]map[identity]*application
	versions map[types.UID]string // of children, as our own requests made them
	found    map[types.UID]string // of children, as they were read before the next request
}

func newApplication(child declared, made *unstructured.Unstructured) *application {
	return &application{
		child: child, uid: made.GetUID(), version: made.GetResourceVersion(), became: fingerprintOf(made.Object),
	}
}

// read notes the version of a child before our own request.
func (a *applications) read(child types.UID, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found == nil {
		a.found = map[types.UID]string{}
	}
	a.found[child] = version
}

// noteRead is read for a child of a watched kind.
func (k *Keeper) noteRead(child *metav1.PartialObjectMetadata) {
	if k.isWatched(child.GroupVersionKind().GroupKind()) {
		k.applied.read(child.UID, child.ResourceVersion)
	}
}

func (k *Keeper) isWatched(kind schema.GroupKind) bool { return k.Watched != nil && k.Watched(kind) }

// wrote notes the version that our own request made of a child. A version that was read before the request is not
// ours. If none was read, the version is ours only if hasChanged: the child differs from the former declaration.
func (a *applications) wrote(made *unstructured.Unstructured, hasChanged bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, wasRead := a.found[made.GetUID()]
	delete(a.found, made.GetUID())
	if wasRead && before == made.GetResourceVersion() || !wasRead && !hasChanged {
		return
	}
	if a.versions == nil {
		a.versions = map[types.UID]string{}
	}
	a.versions[made.GetUID()] = made.GetResourceVersion()
}

// add notes what has been applied for a handler of the parent.
func (a *applications) add(parent types.UID, record string, one *application) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.parents == nil {
		a.parents = map[types.UID]map[string]map[identity]*application{}
	}
	if a.parents[parent] == nil {
		a.parents[parent] = map[string]map[identity]*application{}
	}
	if a.parents[parent][record] == nil {
		a.parents[parent][record] = map[identity]*application{}
	}
	a.parents[parent][record][one.child.identity] = one
}

// drop forgets a child that is declared again, and returns its former application.
func (a *applications) drop(parent types.UID, record string, child identity) *application {
	a.mu.Lock()
	defer a.mu.Unlock()
	records := a.parents[parent]
	one := records[record][child]
	delete(records[record], child)
	a.tidy(parent, record)
	return one
}

// keep forgets the children that the handler does not declare any more.
func (a *applications) keep(parent types.UID, record string, declared set) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.parents[parent][record], func(one identity, _ *application) bool {
		_, ok := declared[one]
		return !ok
	})
	a.tidy(parent, record)
}

// tidy drops empty maps.
func (a *applications) tidy(parent types.UID, record string) {
	records := a.parents[parent]
	if len(records[record]) == 0 {
		delete(records, record)
	}
	if len(records) == 0 {
		delete(a.parents, parent)
	}
}

// forget drops all of a parent.
func (a *applications) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, record := range a.parents[parent] {
		for _, one := range record {
			delete(a.versions, one.uid)
			delete(a.found, one.uid)
		}
	}
	delete(a.parents, parent)
}

// Wrote tells whether this version of a child is what our own request made of it.
func (k *Keeper) Wrote(child types.UID, version string) bool {
	k.applied.mu.Lock()
	defer k.applied.mu.Unlock()
	return version != "" && k.applied.versions[child] == version
}

// Outdated tells whether a child of the parent has been applied since it was in this state.
func (k *Keeper) Outdated(parent types.UID, child *unstructured.Unstructured) bool {
	k.applied.mu.Lock()
	defer k.applied.mu.Unlock()
	for _, record := range k.applied.parents[parent] {
		one := record[identityOf(child)]
		if one != nil && patching.Newer(one.version, child.GetResourceVersion()) {
			return true
		}
	}
	return false
}

// Gone is told of the end of a child that was watched.
func (k *Keeper) Gone(child types.UID) {
	k.applied.mu.Lock()
	defer k.applied.mu.Unlock()
	delete(k.applied.versions, child)
	delete(k.applied.found, child)
}

// Forget drops what is kept for a parent that is gone, or of which no handler is called any more.
func (k *Keeper) Forget(parent types.UID) {
	k.applied.forget(parent)
	k.proofs.forget(parent)
}

// Declared returns a function that is true for the children that the parent has declared: this process has applied
// them for the parent, or a record in the body of the parent lists them. A record that cannot be read lists nothing.
func (k *Keeper) Declared(parent types.UID, body map[string]any) func(child *unstructured.Unstructured) bool {
	all := k.latest.recorded(body, k.isRecord)
	proven := sync.OnceValue(func() set { return union(k.proofs.of(parent)) })
	return func(child *unstructured.Unstructured) bool {
		identity := identityOf(child)
		if _, ok := all[identity]; ok {
			return true
		}
		_, ok := proven()[identity]
		return ok
	}
}

// latestRecords are what the records of the parent say that was asked for last: the children of one parent come in a
// row, and a record may list thousands. The zero value is ready to use.
type latestRecords struct {
	mu      sync.Mutex
	parent  types.UID
	version string
	all     set
}

// recorded returns the children in all records of a parent; none if they cannot be read.
func (l *latestRecords) recorded(body map[string]any, is func(name string) bool) set {
	l.mu.Lock()
	defer l.mu.Unlock()
	parent, version := uidOf(body), patching.VersionOf(body)
	if version == "" || l.parent != parent || l.version != version {
		all, err := recordedAll(body, is)
		if err != nil {
			all = nil
		}
		l.parent, l.version, l.all = parent, version, all
	}
	return l.all
}

// fingerprint is that of an object without what changes by itself: two states of one object that have the same are
// nothing to be repaired.
type fingerprint [sha256.Size]byte

func fingerprintOf(object map[string]any) fingerprint {
	essential := make(map[string]any, len(object))
	for key, value := range object {
		if key != "status" {
			essential[key] = value
		}
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		own := make(map[string]any, len(metadata))
		for key, value := range metadata {
			switch key {
			case "resourceVersion", "managedFields", "generation":
			case "annotations":
				own[key] = withoutRecords(value)
			default:
				own[key] = value
			}
		}
		essential["metadata"] = own
	}
	text, err := json.Marshal(essential) // which sorts the keys
	if err != nil {
		return fingerprint{} // of no object that the API server has sent
	}
	return sha256.Sum256(text)
}

// withoutRecords leaves out the annotation with the records of the parent: a child that another handler declares as
// well is named by one more record, and is no drift for the first one.
func withoutRecords(annotations any) any {
	all, _ := annotations.(map[string]any)
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(key string, _ any) bool { return strings.HasSuffix(key, "/"+keys.DeclaredIn) })
	return rest
}
