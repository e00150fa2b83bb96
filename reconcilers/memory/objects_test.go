package memory_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
)

var widgets = schema.GroupResource{Group: "example.org", Resource: "widgets"}

// marks tells whether an object that is listed now is met for the first time.
func marks(s *memory.Objects) bool {
	s.MarkInitial("probe")
	defer s.Forget("probe")
	return s.Take("probe").Changes.Initial
}

// The memory of a kind outlives its controllers, that of other kinds and namespaces is another one.
func TestMemoryOfScopes(t *testing.T) {
	var r memory.Registry
	here, there := memory.Scope{Resource: widgets, Namespace: "here"}, memory.Scope{
		Resource: widgets, Namespace: "there",
	}
	first := r.Of(here)
	first.Objects.Begin(true)
	if !marks(first.Objects) || first != r.Of(here) {
		t.Error("a kind that is served again has another memory")
	}
	if other := r.Of(there); other.Objects == first.Objects || other.Background == first.Background ||
		other.Indexer == first.Indexer {
		t.Error("two namespaces share a memory: the end of the first listing of one would be that of both")
	}
	others := r.Of(memory.Scope{Resource: schema.GroupResource{Group: "example.org", Resource: "clusters"}})
	others.Objects.Begin(false)
	if marks(others.Objects) {
		t.Error("a kind without resume handlers marks objects")
	}
}

// Resume handlers that join a kind later are told of the objects.
func TestResumeHandlersThatJoinLater(t *testing.T) {
	s := memory.NewObjects()
	s.Begin(false)
	s.Leave(nil)
	if s.Begin(true); !marks(s) {
		t.Error("a resume handler that joins the kind later is never told of any object")
	}
}

// Versions are views of the same objects, and share a scope: nothing is met anew. What came while no controller was
// running is.
func TestMemoryOfAnotherController(t *testing.T) {
	s := memory.NewObjects()
	s.Begin(true)
	s.Leave([]any{object("probe")})
	if s.Begin(true); marks(s) {
		t.Error("all objects are met for the first time again")
	}
	s.Missed(nil)
	s.Leave([]any{object("another")})
	if s.Begin(true); !marks(s) {
		t.Error("an object that came meanwhile is not met for the first time")
	}
}

// A mark is kept until the object is handled, or missing in the next listing that is complete.
func TestMarksOfAnIncompleteListing(t *testing.T) {
	s := memory.NewObjects()
	s.Begin(true)
	s.MarkInitial("stays")
	s.MarkInitial("goes")
	s.Begin(true)
	if gone := s.Missed([]any{object("stays")}); !slices.Equal(gone, []types.UID{"goes"}) || s.Len() != 1 {
		t.Errorf("missed %v, and %d are left", gone, s.Len())
	}
	if !s.Take("stays").Changes.Initial {
		t.Error("the mark of an object that was not handled is lost")
	}
}

// Handlers are not told of a deletion any more when the run that has seen it is over; all that is kept goes.
func TestDeletedBeforeTheNextRun(t *testing.T) {
	s := memory.NewObjects()
	s.Begin(false)
	s.Delete(object("goes"))
	s.Leave(nil)
	s.Begin(false)
	if gone := s.Missed(nil); !slices.Equal(gone, []types.UID{"goes"}) {
		t.Errorf("missed %v", gone)
	}
	if key := (types.NamespacedName{Namespace: "ns", Name: "a"}); s.Deleted(key, "goes") {
		t.Error("a deletion is kept that nobody takes")
	}
}

func object(uid types.UID) *compact.Object {
	return compacttest.Of(map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": "a", "uid": string(uid),
	}})
}

// version is one state of the object.
func version(uid types.UID, version string) *compact.Object {
	return compacttest.Of(map[string]any{"metadata": map[string]any{"uid": string(uid), "resourceVersion": version}})
}

// What has gone while nobody was there is given once, and forgotten.
func TestMissed(t *testing.T) {
	s := memory.NewObjects()
	for _, uid := range []types.UID{"stays", "goes"} {
		o := s.Take(uid)
		o.Blocks("something")
		s.Put(uid, o)
	}
	s.Leave([]any{object("stays"), object("goes")})
	if d := cmp.Diff([]types.UID{"goes"}, s.Missed([]any{object("stays"), object("new")})); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if s.Len() != 1 {
		t.Errorf("the memory of %d objects is left, want one", s.Len())
	}
	if gone := s.Missed([]any{object("stays")}); len(gone) > 0 {
		t.Errorf("given a second time: %v", gone)
	}
}

// That an object has gone is known until handlers have been told.
func TestDeletions(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	s := memory.NewObjects()
	o := s.Take("u1")
	o.Blocks("something")
	s.Put("u1", o)
	s.Delete(object("u1"))
	s.Delete(object("u2"))
	if s.Len() != 0 || !s.Deleted(key, "u1") || !s.Deleted(key, "u2") || s.Deleted(key, "u3") {
		t.Error("the objects are not forgotten, or nobody knows that they have gone")
	}
	if d := cmp.Diff([]types.UID{"u1", "u2"}, s.TakeDeletions(key)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if s.Deleted(key, "u1") || s.TakeDeletions(key) != nil {
		t.Error("known still, after handlers were told")
	}
}

// Objects that wait for their next pass need no write of ours to be kept that the cache has.
func TestSeen(t *testing.T) {
	tests := map[string]struct {
		reason string
		seen   string
		taken  bool
		want   int
	}{
		"Behind": {"the cache would have what was before our write", "8", false, 1},
		"There":  {"the cache has it", "9", false, 0},
		"Ahead":  {"the cache has more", "10", false, 0},
		"Taken":  {"a pass is at work with it, on another goroutine", "9", true, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := memory.NewObjects()
			o := s.Take("u1")
			o.Wrote(body("9"), false)
			s.Put("u1", o)
			if tc.taken {
				s.Take("u1")
			}
			s.Seen(version("u1", tc.seen))
			if got := s.Len(); got != tc.want {
				t.Errorf("%s: got the memory of %d objects, want %d", tc.reason, got, tc.want)
			}
			s.Put("u1", s.Take("u1"))
			if s.Seen(version("u1", "9")); s.Len() > 0 {
				t.Error("after the pass, the cache has it")
			}
		})
	}
}

// What else is known of an object outlives our write.
func TestSeenWithMoreInMemory(t *testing.T) {
	s := memory.NewObjects()
	o := s.Take("u1")
	o.Wrote(body("9"), false)
	o.Blocks("something")
	s.Put("u1", o)
	s.Seen(version("u1", "9"))
	if o := s.Take("u1"); keepsWrite(o) || o.Blocks("something") {
		t.Errorf("got %+v", o)
	}
}
