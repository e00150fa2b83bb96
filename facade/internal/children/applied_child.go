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

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// appliedChild is the last apply of one child by this process. It is kept only for children of watched kinds, to detect
// drift and to repair it.
type appliedChild struct {
	child              declaredChild
	uid                types.UID
	resourceVersion    string
	appliedFingerprint fingerprint // of the object that the API server returned
	outcome            outcome     // for a child with UntilDone: the observed outcome, empty while it runs

	drift        drift
	driftVersion string    // the resourceVersion with the drift
	lastRepair   time.Time // the start of the last repair
	repairCount  int       // repairs in a row, for the delay of the next one
}

// drift is the kind of a change that the declaration does not explain; empty if the child is as it was applied. The
// value is part of log lines and of the Kubernetes event about the repair.
type drift string

const (
	driftDeleted drift = "deleted"
	driftEdited  drift = "changed"
)

// newAppliedChild records the object that the API server returned for an apply.
func newAppliedChild(child declaredChild, made *unstructured.Unstructured) *appliedChild {
	return &appliedChild{
		child: child, uid: made.GetUID(), resourceVersion: made.GetResourceVersion(),
		appliedFingerprint: fingerprintOf(made.Object),
	}
}

// isWatched reports whether an informer delivers events for children of the kind. Drift of other children goes
// unnoticed until the next call of Ensure.
func (k *Keeper) isWatched(kind schema.GroupKind) bool {
	return k.WatchesKind != nil && k.WatchesKind(kind)
}

// IsOwnWrite reports whether this version of a child is the result of our own request (an own write). The informer's
// event for it is then not passed on to handlers.
func (k *Keeper) IsOwnWrite(child types.UID, version string) bool {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	return version != "" && k.memory.writtenVersions[child] == version
}

// IsOutdated reports whether this state of a child is stale: the operator has applied the child for the parent since.
// The informer's cache can lag behind our own request.
func (k *Keeper) IsOutdated(parent types.UID, child *unstructured.Unstructured) bool {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	for _, s := range k.memory.parentSets(parent) {
		one := s.appliedChildren[identityOf(child)]
		if one != nil && patching.IsNewerVersion(one.resourceVersion, child.GetResourceVersion()) {
			return true
		}
	}
	return false
}

// ForgetChild drops the versions of a watched child that was deleted. Without it, the maps would grow with each deleted
// child.
func (k *Keeper) ForgetChild(child types.UID) {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	delete(k.memory.writtenVersions, child)
	delete(k.memory.readVersions, child)
}

// Forget drops the memory of a parent that was deleted or that no longer has handlers. The proofs go as well: if the
// parent is handled again later, each child is read and checked before it is applied.
func (k *Keeper) Forget(parent types.UID) {
	k.memory.forgetApplied(parent)
	k.memory.updateParent(parent, func(p *parentMemory) { p.sets = nil })
}

// DeclaredMatcher returns a function that reports whether the parent has declared a child: this process has applied it
// for the parent, or a record in the body of the parent lists it. A record that cannot be read lists nothing.
func (k *Keeper) DeclaredMatcher(parent types.UID, body map[string]any) func(child *unstructured.Unstructured) bool {
	// The proofs are decoded only if some child is missing in the records, which come from a cache.
	all := k.recordCache.childrenIn(body, k.isRecord)
	proven := sync.OnceValue(func() childSet { return unionOf(k.memory.provenRecords(parent)) })
	return func(child *unstructured.Unstructured) bool {
		identity := identityOf(child)
		if _, ok := all[identity]; ok {
			return true
		}
		_, ok := proven()[identity]
		return ok
	}
}

// recordCache caches the decoded records of the parent that was requested last. Informers deliver the children of one
// parent in a row, and a record may list thousands of children. The zero value is ready to use.
type recordCache struct {
	mu              sync.Mutex
	parent          types.UID
	resourceVersion string
	children        childSet
}

// childrenIn returns the children in all records of a parent. It returns nil if they cannot be read; the next pass of
// the handler reports that error. The mutex is held while the records are decoded, so concurrent callers for one parent
// share the work.
func (l *recordCache) childrenIn(body map[string]any, is func(name string) bool) childSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	parent, version := uidOf(body), patching.ResourceVersion(body)
	// An object without a resourceVersion comes from a test or a partial object and cannot be cached.
	if version == "" || l.parent != parent || l.resourceVersion != version {
		all, err := readAllChildren(body, is)
		if err != nil {
			all = nil
		}
		l.parent, l.resourceVersion, l.children = parent, version, all
	}
	return l.children
}

// fingerprint is a digest of JSON values.
type fingerprint [sha256.Size]byte

// fingerprintOf returns the digest of an object without the fields that change on their own: the status, which belongs
// to the child's controller, and the metadata that each write changes. Two states of one object with the same
// fingerprint need no repair.
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
	return fingerprintOfJSON(essential)
}

// fingerprintOfJSON returns the digest of a tree of JSON values. Equal trees have equal digests.
func fingerprintOfJSON(value any) fingerprint {
	text, err := json.Marshal(value) // encoding/json sorts the keys
	if err != nil {
		return fingerprint{} // unreachable for values that were decoded from JSON
	}
	return sha256.Sum256(text)
}

// withoutRecords returns the annotations without the names of the parent's records. If another handler declares the
// child as well, one more record is named. That is not drift for the first handler.
func withoutRecords(annotations any) any {
	all, _ := annotations.(map[string]any)
	rest := maps.Clone(all)
	maps.DeleteFunc(rest, func(key string, _ any) bool { return strings.HasSuffix(key, "/"+keys.DeclaredIn) })
	return rest
}
