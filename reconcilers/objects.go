package reconcilers

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/indexes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/source"
)

// objects is the memory of one kind, by uid. The queue never runs two passes over one object at once, so only the map
// needs the lock.
type objects struct {
	forgotten func(types.UID) // is told of the end of every object; nil is not
	resuming  bool            // there are handlers that want to know which objects were there at the start
	raw       *rawEvents
	indexer   *indexes.Indexer // nil if there is nothing to be indexed

	before    map[types.UID]bool                   // what was there when the kind was served last
	farewells map[types.NamespacedName][]types.UID // what has gone, until all have been told

	mu    sync.Mutex
	done  bool // the first listing is over: what is listed after that is not met for the first time
	byUID map[types.UID]*object
}

var _ source.Watcher = (*objects)(nil)

func newObjects(resuming bool) *objects {
	return &objects{resuming: resuming, byUID: map[types.UID]*object{}}
}

// begin is before a service of the kind. The first one that wants to know begins the time of first meetings.
func (s *objects) begin(resuming bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resuming && !s.resuming {
		s.resuming, s.done = true, false
	}
}

// Seen brings the indices up to date, then keeps the event for the handlers of events, if there are any.
func (s *objects) Seen(kind string, obj source.Object) {
	if s.indexer != nil {
		s.indexer.Seen(kind, obj)
	}
	s.raw.add(kind, obj)
}

// Listed marks the objects that were there at the start.
func (s *objects) Listed(obj source.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resuming && !s.done {
		s.entry(obj.GetUID()).memory.Initial = true
	}
}

// endListing ends the time of first meetings: a kind that had to be started anew resumes nothing twice.
func (s *objects) endListing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
}

// Deleted forgets the object. Others may be told of its end yet: what they remember of it stays until then.
func (s *objects) Deleted(obj source.Object) {
	s.gone(obj.GetUID())
	s.mu.Lock()
	defer s.mu.Unlock()
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	if s.farewells == nil {
		s.farewells = map[types.NamespacedName][]types.UID{}
	}
	s.farewells[key] = append(s.farewells[key], obj.GetUID())
}

// farewell gives the objects of this name that have gone.
func (s *objects) farewell(key types.NamespacedName) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.farewells[key]
	delete(s.farewells, key)
	return gone
}

func (s *objects) gone(uid types.UID) {
	s.forget(uid)
	if s.forgotten != nil {
		s.forgotten(uid)
	}
}

// leave is when the kind is not served any more: of what goes from now on, nobody tells.
func (s *objects) leave(all []any) {
	if s.before == nil {
		s.before = map[types.UID]bool{}
	}
	maps.Copy(s.before, uidsOf(all))
}

// missed forgets what has gone meanwhile, when the kind is listed again, and gives it.
func (s *objects) missed(all []any) (gone []types.UID) {
	now := uidsOf(all)
	for uid := range s.before {
		if !now[uid] {
			s.gone(uid)
			gone = append(gone, uid)
		}
	}
	s.before = nil
	return gone
}

func uidsOf(all []any) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(all))
	for _, item := range all {
		if obj, ok := item.(source.Object); ok {
			uids[obj.GetUID()] = true
		}
	}
	return uids
}

func (s *objects) entry(uid types.UID) *object {
	o := s.byUID[uid]
	if o == nil {
		o = &object{}
		s.byUID[uid] = o
	}
	return o
}

// take gives the memory of an object for a pass; put keeps what is worth keeping of it.
func (s *objects) take(uid types.UID) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byUID[uid]; o != nil {
		return o
	}
	return &object{}
}

func (s *objects) put(uid types.UID, o *object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.idle() {
		delete(s.byUID, uid)
		return
	}
	s.byUID[uid] = o
}

func (s *objects) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}
