package children

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

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

func newApplication(child declared, made *unstructured.Unstructured) *application {
	return &application{
		child: child, uid: made.GetUID(), version: made.GetResourceVersion(), became: fingerprintOf(made.Object),
	}
}

func (k *Keeper) isWatched(kind schema.GroupKind) bool { return k.Watched != nil && k.Watched(kind) }

// Wrote tells whether this version of a child is what our own request made of it.
func (k *Keeper) Wrote(child types.UID, version string) bool {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	return version != "" && k.memory.versions[child] == version
}

// Outdated tells whether a child of the parent has been applied since it was in this state.
func (k *Keeper) Outdated(parent types.UID, child *unstructured.Unstructured) bool {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	for _, s := range k.memory.sets(parent) {
		one := s.applied[identityOf(child)]
		if one != nil && patching.Newer(one.version, child.GetResourceVersion()) {
			return true
		}
	}
	return false
}

// Gone is told of the end of a child that was watched.
func (k *Keeper) Gone(child types.UID) {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	delete(k.memory.versions, child)
	delete(k.memory.found, child)
}

// Forget drops what is kept for a parent that is gone, or of which no handler is called any more.
func (k *Keeper) Forget(parent types.UID) {
	k.memory.forgetApplied(parent)
	k.memory.updateParent(parent, func(p *parentMemory) { p.sets = nil })
}

// Declared returns a function that is true for the children that the parent has declared: this process has applied
// them for the parent, or a record in the body of the parent lists them. A record that cannot be read lists nothing.
func (k *Keeper) Declared(parent types.UID, body map[string]any) func(child *unstructured.Unstructured) bool {
	all := k.latest.recorded(body, k.isRecord)
	proven := sync.OnceValue(func() set { return union(k.memory.proven(parent)) })
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
