package memory_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
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
// What is known of a handled object outlives its entry, and goes with the object.
func TestHandledObjects(t *testing.T) {
	known := changes.Handled{Hash: 7, Held: true}
	for name, end := range map[string]func(*memory.Objects){
		"Deleted":   func(s *memory.Objects) { s.Delete(object("u1")) },
		"Forgotten": func(s *memory.Objects) { s.Forget("u1") },
		"Missed":    func(s *memory.Objects) { s.Missed(nil) },
		"Nothing": func(s *memory.Objects) {
			o := s.Take("u1")
			o.Changes.Handled = changes.Handled{}
			s.Put("u1", o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.NewObjects()
			o := s.Take("u1")
			o.Changes.Handled = known
			s.Put("u1", o)
			if s.Len() != 0 {
				t.Error("a handled object has no entry")
			}
			o = s.Take("u1")
			s.Put("u1", o)
			if o.Changes.Handled != known {
				t.Errorf("the object is known as %+v, want %+v", o.Changes.Handled, known)
			}
			end(s)
			if got := s.Take("u1").Changes.Handled; got != (changes.Handled{}) {
				t.Errorf("the object is still known as %+v", got)
			}
		})
	}
}

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

// What comes during a pass is judged at its end, by what the pass has written by then.
func TestNewsOfAPass(t *testing.T) {
	wrote := changes.Next{Settled: true, Written: jsontext.Of(body("9"))}
	tests := map[string]struct {
		reason string
		seen   []string // the versions that come, one second apart
		next   changes.Next
		want   string // the version that the next pass is for
	}{
		"Nothing":      {"nothing has come", nil, wrote, ""},
		"Echo":         {"the answer may come after the event", []string{"9"}, wrote, ""},
		"Echoes":       {"a pass writes more than once", []string{"8", "9"}, wrote, ""},
		"Before":       {"what was before our write was in the answer to it", []string{"8"}, wrote, ""},
		"Ahead":        {"others have written after us", []string{"8", "9", "10"}, wrote, "10"},
		"NoWrite":      {"the pass has looked before", []string{"8"}, changes.Next{Settled: true}, "8"},
		"NotSettled":   {"there is more to be done", []string{"9"}, changes.Next{Written: wrote.Written}, "9"},
		"BeforeAndNot": {"so it is with what was before", []string{"8"}, changes.Next{Written: wrote.Written}, "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewObjects()
				o := s.Take("u1")
				first := time.Now()
				for _, seen := range tc.seen {
					if !s.TakeEcho(version("u1", seen)) {
						t.Errorf("%s: a pass is asked for before the end of this one", seen)
					}
					time.Sleep(time.Second)
				}
				o.Proceed(version("u1", "7"), tc.next, nil)
				news := s.Put("u1", o)
				got := ""
				if news.Object != nil {
					got = news.Object.GetResourceVersion()
				}
				if got != tc.want || got != "" && !news.Since.Equal(first) {
					t.Errorf("%s: got %q since %s, want %q since %s", tc.reason, got, news.Since, tc.want, first)
				}
				if again := s.Put("u1", s.Take("u1")); again.Object != nil {
					t.Error("told once more")
				}
			})
		})
	}
}

// What comes when no pass is at work is judged at once, whatever has come before.
func TestNewsBetweenPasses(t *testing.T) {
	s := memory.NewObjects()
	s.Put("u1", s.Take("u1"))
	if s.TakeEcho(version("u1", "8")) {
		t.Error("nobody would look at it")
	}
	s.Take("u2")
	if s.TakeEcho(version("u1", "8")) {
		t.Error("the pass is at work on another object")
	}
}

// An object for which the framework has failed may be looked at at once when there is no time.
func TestHasten(t *testing.T) {
	s := memory.NewObjects()
	s.Hasten("unknown")
	o := s.Take("u1")
	o.Throttle.Fail([]time.Duration{time.Hour}, 0, time.Now())
	s.Put("u1", o)
	s.Hasten("u1")
	if wait := s.Take("u1").Throttle.Wait(time.Now()); wait != 0 || s.Len() != 1 {
		t.Errorf("to wait %s, of %d objects", wait, s.Len())
	}
}
