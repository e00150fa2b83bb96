package memory_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

var widgets = schema.GroupResource{Group: "example.org", Resource: "widgets"}

// marksInitial reports whether an object that is listed now is marked as initial.
func marksInitial(s *memory.Objects) bool {
	s.MarkInitial("probe")
	defer s.ForgetObject("probe")
	return s.BeginPass("probe").Changes.Initial
}

// TestMemoryOfScopes shows that the memory of a kind outlives its controllers, and that kinds and namespaces have
// separate memories.
func TestMemoryOfScopes(t *testing.T) {
	var r memory.Registry
	here, there := memory.KindScope{Resource: widgets, Namespace: "here"}, memory.KindScope{
		Resource: widgets, Namespace: "there",
	}
	first := r.MemoryOf(here)
	first.Objects.BeginRun(true)
	if !marksInitial(first.Objects) || first != r.MemoryOf(here) {
		t.Error("a kind that is served again has another memory")
	}
	if other := r.MemoryOf(there); other.Objects == first.Objects || other.Background == first.Background ||
		other.Indexer == first.Indexer {
		t.Error("two namespaces share a memory: the end of the first listing of one would count for both")
	}
	others := r.MemoryOf(memory.KindScope{Resource: schema.GroupResource{Group: "example.org", Resource: "clusters"}})
	others.Objects.BeginRun(false)
	if marksInitial(others.Objects) {
		t.Error("a kind without resume handlers marks objects")
	}
}

// TestResumeHandlersThatJoinLater shows that objects are marked as initial for resume handlers that join a kind later.
func TestResumeHandlersThatJoinLater(t *testing.T) {
	s := memory.NewObjects()
	s.BeginRun(false)
	s.EndRun(nil)
	if s.BeginRun(true); !marksInitial(s) {
		t.Error("no object is marked for a resume handler that joins the kind later")
	}
}

// TestMemoryOfAnotherController shows that objects known to a former controller of the scope, of any version, are not
// initial again, and that objects created in between are.
func TestMemoryOfAnotherController(t *testing.T) {
	s := memory.NewObjects()
	s.BeginRun(true)
	s.EndRun([]any{objectWithUID("probe")})
	if s.BeginRun(true); marksInitial(s) {
		t.Error("all objects are marked as initial again")
	}
	s.ForgetMissing(nil)
	s.EndRun([]any{objectWithUID("another")})
	if s.BeginRun(true); !marksInitial(s) {
		t.Error("an object created between two runs is not marked as initial")
	}
}

// TestMarksOfAnIncompleteListing shows that a mark is kept until the object is handled, or missing in the next complete
// listing.
func TestMarksOfAnIncompleteListing(t *testing.T) {
	s := memory.NewObjects()
	s.BeginRun(true)
	s.MarkInitial("stays")
	s.MarkInitial("goes")
	s.BeginRun(true)
	if gone := s.ForgetMissing([]any{objectWithUID("stays")}); !slices.Equal(gone, []types.UID{"goes"}) ||
		s.Len() != 1 {
		t.Errorf("missed %v, %d objects remain", gone, s.Len())
	}
	if !s.BeginPass("stays").Changes.Initial {
		t.Error("the mark of an unhandled object is lost")
	}
}

// TestDeletedBeforeTheNextRun shows that a deletion is not delivered to handlers after the end of its run, and leaves
// no memory.
func TestDeletedBeforeTheNextRun(t *testing.T) {
	s := memory.NewObjects()
	s.BeginRun(false)
	s.NoteDeletion(objectWithUID("goes"))
	s.EndRun(nil)
	s.BeginRun(false)
	if gone := s.ForgetMissing(nil); !slices.Equal(gone, []types.UID{"goes"}) {
		t.Errorf("missed %v", gone)
	}
	if key := (types.NamespacedName{Namespace: "ns", Name: "a"}); s.WasDeleted(key, "goes") {
		t.Error("the deletion is kept after the end of its run")
	}
}

func objectWithUID(uid types.UID) *compact.CachedObject {
	return compacttest.NewObject(map[string]any{"metadata": map[string]any{
		"namespace": "ns", "name": "a", "uid": string(uid),
	}})
}

// objectVersion returns one state of the object.
func objectVersion(uid types.UID, version string) *compact.CachedObject {
	return compacttest.NewObject(map[string]any{"metadata": map[string]any{"uid": string(uid),
		"resourceVersion": version}})
}

// TestHandledObjects shows that the knowledge of a handled object outlives its entry, and is removed with the object.
func TestHandledObjects(t *testing.T) {
	known := changes.HandledState{Hash: 7, HadFinalizer: true}
	for name, end := range map[string]func(*memory.Objects){
		"Deleted":   func(s *memory.Objects) { s.NoteDeletion(objectWithUID("u1")) },
		"Forgotten": func(s *memory.Objects) { s.ForgetObject("u1") },
		"Missed":    func(s *memory.Objects) { s.ForgetMissing(nil) },
		"Nothing": func(s *memory.Objects) {
			o := s.BeginPass("u1")
			o.Changes.HandledState = changes.HandledState{}
			s.EndPass("u1", o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.NewObjects()
			o := s.BeginPass("u1")
			o.Changes.HandledState = known
			s.EndPass("u1", o)
			if s.Len() != 0 {
				t.Error("a handled object has an entry")
			}
			o = s.BeginPass("u1")
			s.EndPass("u1", o)
			if o.Changes.HandledState != known {
				t.Errorf("the object is known as %+v, want %+v", o.Changes.HandledState, known)
			}
			end(s)
			if got := s.BeginPass("u1").Changes.HandledState; got != (changes.HandledState{}) {
				t.Errorf("the object is still known as %+v", got)
			}
		})
	}
}

// TestMissed shows that objects deleted between two runs are returned once, and forgotten.
func TestMissed(t *testing.T) {
	s := memory.NewObjects()
	for _, uid := range []types.UID{"stays", "goes"} {
		o := s.BeginPass(uid)
		o.NoteBlocked("something")
		s.EndPass(uid, o)
	}
	s.EndRun([]any{objectWithUID("stays"), objectWithUID("goes")})
	if d := cmp.Diff([]types.UID{"goes"}, s.ForgetMissing([]any{objectWithUID("stays"),
		objectWithUID("new")})); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if s.Len() != 1 {
		t.Errorf("the memory of %d objects remains, want one", s.Len())
	}
	if gone := s.ForgetMissing([]any{objectWithUID("stays")}); len(gone) > 0 {
		t.Errorf("returned a second time: %v", gone)
	}
}

// TestDeletions shows that a deletion is known until handlers have received it.
func TestDeletions(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "a"}
	s := memory.NewObjects()
	o := s.BeginPass("u1")
	o.NoteBlocked("something")
	s.EndPass("u1", o)
	s.NoteDeletion(objectWithUID("u1"))
	s.NoteDeletion(objectWithUID("u2"))
	if s.Len() != 0 || !s.WasDeleted(key, "u1") || !s.WasDeleted(key, "u2") || s.WasDeleted(key, "u3") {
		t.Error("the objects are not forgotten, or their deletions are not known")
	}
	first := s.TakeDeletions(key, s.CountDeletions(key)-1)
	if !s.WasDeleted(key, "u2") || s.WasDeleted(key, "u1") {
		t.Error("the second deletion must wait, and the first one must not")
	}
	if d := cmp.Diff([]types.UID{"u1", "u2"}, append(first, s.TakeDeletions(key, 1)...)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
	if s.WasDeleted(key, "u1") || len(s.TakeDeletions(key, 1)) > 0 {
		t.Error("the deletions are known after they were taken")
	}
}

// TestSeen shows that a waiting object drops its own write when the cache has it.
func TestSeen(t *testing.T) {
	tests := map[string]struct {
		reason       string
		eventVersion string
		duringPass   bool
		want         int
	}{
		"Behind": {"an event from before the own write keeps it", "8", false, 1},
		"There":  {"the event of the own write drops it", "9", false, 0},
		"Ahead":  {"an event after the own write drops it", "10", false, 0},
		"Taken":  {"an event during a pass keeps the write for the pass", "9", true, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := memory.NewObjects()
			o := s.BeginPass("u1")
			o.NoteWrite(bodyWithVersion("9"), false)
			s.EndPass("u1", o)
			if tc.duringPass {
				s.BeginPass("u1")
			}
			s.NoteEvent(objectVersion("u1", tc.eventVersion))
			if got := s.Len(); got != tc.want {
				t.Errorf("%s: got the memory of %d objects, want %d", tc.reason, got, tc.want)
			}
			s.EndPass("u1", s.BeginPass("u1"))
			if s.NoteEvent(objectVersion("u1", "9")); s.Len() > 0 {
				t.Error("the write is kept after the pass, although the cache has it")
			}
		})
	}
}

// TestSeenWithMoreInMemory shows that dropping an own write keeps other knowledge of the object.
func TestSeenWithMoreInMemory(t *testing.T) {
	s := memory.NewObjects()
	o := s.BeginPass("u1")
	o.NoteWrite(bodyWithVersion("9"), false)
	o.NoteBlocked("something")
	s.EndPass("u1", o)
	s.NoteEvent(objectVersion("u1", "9"))
	if o := s.BeginPass("u1"); keepsWrite(o) || o.NoteBlocked("something") {
		t.Errorf("got %+v", o)
	}
}

// TestEventsDuringPass shows that events during a pass are evaluated at its end, against the writes of the pass.
func TestEventsDuringPass(t *testing.T) {
	wrote := changes.PassResult{Settled: true, Answer: jsontext.NewFromValue(bodyWithVersion("9"))}
	tests := map[string]struct {
		reason        string
		eventVersions []string // versions of the events, one second apart
		next          changes.PassResult
		want          string // the version for which a pass is due
	}{
		"Nothing": {"without an event no pass is due", nil, wrote, ""},
		"Echo":    {"the event of the own write needs no pass", []string{"9"}, wrote, ""},
		"Echoes":  {"the events of several own writes need no pass", []string{"8", "9"}, wrote, ""},
		"Before":  {"an event from before the own write needs no pass", []string{"8"}, wrote, ""},
		"Ahead":   {"an event with a later write by others needs a pass", []string{"8", "9", "10"}, wrote, "10"},
		"NoWrite": {"an event during a pass without a write needs a pass",
			[]string{"8"}, changes.PassResult{Settled: true}, "8"},
		"NotSettled": {"the event of an unsettled pass needs a pass",
			[]string{"9"}, changes.PassResult{Answer: wrote.Answer}, "9"},
		"BeforeAndNot": {"an event from before the write of an unsettled pass needs a pass",
			[]string{"8"}, changes.PassResult{Answer: wrote.Answer}, "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewObjects()
				o := s.BeginPass("u1")
				first := time.Now()
				for _, seen := range tc.eventVersions {
					if !s.CheckEcho(objectVersion("u1", seen)) {
						t.Errorf("%s: a pass is requested before the end of this one", seen)
					}
					time.Sleep(time.Second)
				}
				o.ApplyPassResult(objectVersion("u1", "7"), tc.next, nil)
				news := s.EndPass("u1", o)
				got := ""
				if news.Object != nil {
					got = news.Object.GetResourceVersion()
				}
				if got != tc.want || got != "" && !news.Since.Equal(first) {
					t.Errorf("%s: got %q since %s, want %q since %s", tc.reason, got, news.Since, tc.want, first)
				}
				if again := s.EndPass("u1", s.BeginPass("u1")); again.Object != nil {
					t.Error("the event is reported a second time")
				}
			})
		})
	}
}

// TestNewsBetweenPasses shows that an event without a running pass is evaluated at once.
func TestNewsBetweenPasses(t *testing.T) {
	s := memory.NewObjects()
	s.EndPass("u1", s.BeginPass("u1"))
	if s.CheckEcho(objectVersion("u1", "8")) {
		t.Error("the event is kept although no pass runs")
	}
	s.BeginPass("u2")
	if s.CheckEcho(objectVersion("u1", "8")) {
		t.Error("the event is kept although the pass is over another object")
	}
}

// TestHasten shows that the delay after an error of the framework can be skipped.
func TestHasten(t *testing.T) {
	s := memory.NewObjects()
	s.ClearThrottle("unknown")
	o := s.BeginPass("u1")
	o.Throttle.CountFailure([]time.Duration{time.Hour}, 0, time.Now())
	s.EndPass("u1", o)
	s.ClearThrottle("u1")
	if wait := s.BeginPass("u1").Throttle.RemainingDelay(time.Now()); wait != 0 || s.Len() != 1 {
		t.Errorf("wait %s, %d objects", wait, s.Len())
	}
}
