package memory_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/kits/compacttest"
)

func bodyWithVersion(version string) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": version}}
}

// cachedObjectOf returns the object as of a cache, or nil.
func cachedObjectOf(body map[string]any) *compact.CachedObject {
	if body == nil {
		return nil
	}
	return compacttest.NewObject(body)
}

// versionOf returns the version of the newest state, with a cache at the given version.
func versionOf(o *memory.ObjectState, version string) string {
	newest, err := o.NewestState(cachedObjectOf(bodyWithVersion(version)))
	if err != nil {
		return err.Error()
	}
	return newest.StringAt("metadata", "resourceVersion")
}

// TestCatchUp shows that an own write is kept until the cache has caught up with it.
func TestCatchUp(t *testing.T) {
	tests := map[string]struct {
		reason string
		cached string
		want   string // the version that is handled
		kept   bool
	}{
		"Malformed": {"an incomparable cached version keeps the own write", "x", "9", true},
		"None":      {"a cached object without a version keeps the own write", "", "9", true},
		"Behind":    {"a cache behind the own write keeps it", "8", "9", true},
		"There":     {"a cache with the own write drops it", "9", "9", false},
		"Longer":    {"versions are compared as numbers, not as texts", "10", "10", false},
		"Ahead":     {"a cache ahead of the own write drops it", "11", "11", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.ObjectState{}
			o.NoteWrite(bodyWithVersion("9"), false)
			if got := versionOf(o, tc.cached); got != tc.want {
				t.Errorf("%s: got version %s, want %s", tc.reason, got, tc.want)
			}
			if kept := keepsWrite(o); kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}

// keepsWrite reports whether the object keeps a write that a cache may not have.
func keepsWrite(o *memory.ObjectState) bool {
	return versionOf(o, "") != ""
}

// TestProceedWithoutTheObject shows that of an object that the API server does not find, only this is remembered, until
// the cache is updated.
func TestProceedWithoutTheObject(t *testing.T) {
	cached := compacttest.NewObject(bodyWithVersion("5"))
	all := memory.NewObjects()
	o := all.BeginPass("u1")
	o.Throttle.CountFailure(kind.DefaultErrorDelays, 0, time.Now())
	o.NoteBlocked("something")
	o.NoteWrite(bodyWithVersion("6"), false)
	o.ApplyPassResult(cached, changes.PassResult{Gone: true}, cached)
	if !o.HasEnded(cached) || keepsWrite(o) || o.Throttle != (memory.Throttle{}) || !o.NoteBlocked("something") {
		t.Errorf("a missing object keeps more than its end: %+v", o)
	}
	o = all.BeginPass("u1")
	o.ApplyPassResult(cached, changes.PassResult{Gone: true}, cached)
	if all.EndPass("u1", o); all.Len() != 1 {
		t.Error("the end of a missing object is not remembered")
	}
}

// TestPast shows that an ended object is recognized in the cache even with own writes from before the end. Only a later
// version by others means that it still exists.
func TestPast(t *testing.T) {
	tests := map[string]struct {
		reason  string
		written map[string]any
		now     map[string]any
		cached  string
		want    bool
	}{
		"Same": {"an unchanged cached version is past", nil, bodyWithVersion("5"), "5", true},
		"OwnWrite": {"the version of an own write from before the end is past", bodyWithVersion("7"),
			bodyWithVersion("5"), "7", true},
		"ForeignOne": {"the version of a foreign write that the cache had at the end is past",
			nil, bodyWithVersion("8"), "8", true},
		"Between": {"a version between the cached one and the own write is past", bodyWithVersion("7"),
			bodyWithVersion("5"), "6", true},
		"Later": {"a version after all known ones is not past, as the object exists",
			bodyWithVersion("7"), bodyWithVersion("5"), "9", false},
		"NoNumber":  {"an incomparable version is not past", nil, bodyWithVersion("5"), "x", false},
		"Forgotten": {"an object that left the cache during the pass is past", bodyWithVersion("7"), nil, "6", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.ObjectState{}
			o.ApplyPassResult(cachedObjectOf(bodyWithVersion("5")),
				changes.PassResult{Gone: true, Answer: jsontext.NewFromValue(tc.written)},
				cachedObjectOf(tc.now))
			if got := o.HasEnded(cachedObjectOf(bodyWithVersion(tc.cached))); got != tc.want {
				t.Errorf("%s: past: %v", tc.reason, got)
			}
		})
	}
}

// TestProceedBesideTheCache shows that an own write is kept unless the cache has caught up with this object by the end
// of the pass.
func TestProceedBesideTheCache(t *testing.T) {
	body := func(uid, version string) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version}}
	}
	tests := map[string]struct {
		reason string
		now    map[string]any
		kept   bool
	}{
		"Same":    {"a cache behind the own write keeps it", body("u1", "5"), true},
		"There":   {"a cache that caught up during the pass drops it", body("u1", "9"), false},
		"Nothing": {"a cache without the object keeps the write, as the deletion forgets it", nil, true},
		"Successor": {"a cache with a successor keeps the write, as versions are not comparable",
			body("u2", "10"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.ObjectState{}
			o.ApplyPassResult(cachedObjectOf(body("u1", "5")),
				changes.PassResult{Answer: jsontext.NewFromValue(body("u1", "9"))},
				cachedObjectOf(tc.now))
			if kept := keepsWrite(o); kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}

// TestWritesTakeLittleBetweenPasses shows that own writes are kept in compressed form, as many objects may wait with
// one.
func TestWritesTakeLittleBetweenPasses(t *testing.T) {
	const many, limit = 1000, 2000 // decoded, an object of this form takes over 10,000 bytes
	wide := func(n int) map[string]any {
		spec := map[string]any{}
		for field := range 50 {
			spec[fmt.Sprint("field-", field)] = map[string]any{"value": fmt.Sprint("some text ", n)}
		}
		return map[string]any{"metadata": map[string]any{"resourceVersion": "9"}, "spec": spec}
	}
	all, used := memory.NewObjects(), liveHeapSize()
	for n := range many {
		uid := types.UID(fmt.Sprint("u", n))
		o := all.BeginPass(uid)
		o.NoteWrite(wide(n), false)
		all.EndPass(uid, o)
	}
	if added := liveHeapSize() - used; added > many*limit {
		t.Errorf("an object takes %d bytes between passes", added/many)
	}
	newest, err := all.BeginPass("u7").NewestState(cachedObjectOf(bodyWithVersion("8")))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := newest.Value(); err != nil || cmp.Diff(wide(7), got) != "" {
		t.Errorf("the kept write: error %v, -want, +got\n%s", err, cmp.Diff(wide(7), got))
	}
	if got := versionOf(all.BeginPass("u8"), "10"); got != "10" {
		t.Errorf("want the version of the cache, which is ahead of the write, got %s", got)
	}
}

func liveHeapSize() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestEchoes shows which events are echoes of an own write.
func TestEchoes(t *testing.T) {
	quiet := changes.PassResult{Settled: true, Answer: jsontext.NewFromValue(bodyWithVersion("9"))}
	later := time.Minute
	tests := map[string]struct {
		reason   string
		happen   func(o *memory.ObjectState)
		cached   string
		want     bool
		wantKept bool // memory is kept afterwards
	}{
		"Echo":     {"the event of the own write is an echo, and ends the memory", nil, "9", true, false},
		"Before":   {"an event from before the own write is an echo, and keeps the memory", nil, "8", true, true},
		"Ahead":    {"an event with a later write by others is not an echo", nil, "10", false, false},
		"NoNumber": {"an event with an incomparable version is not an echo", nil, "x", false, true},
		"Unsettled": {"a requested pass ends the suppression of echoes", (*memory.ObjectState).RequirePass, "9", false,
			true},
		"Written": {
			"a write without a pass after it ends the suppression of echoes",
			func(o *memory.ObjectState) { o.NoteWrite(bodyWithVersion("10"), false) }, "9", false, true,
		},
		"Initial": {"an object to be resumed needs a pass",
			func(o *memory.ObjectState) { o.Changes.Initial = true }, "9", false, true},
		"Looked": {
			"an unsettled pass ends the suppression of echoes", func(o *memory.ObjectState) {
				o.ApplyPassResult(cachedObjectOf(bodyWithVersion("8")), changes.PassResult{}, nil)
			}, "9", false, true,
		},
		"Delayed": {
			"a delayed attempt ends the suppression of echoes", func(o *memory.ObjectState) {
				o.ApplyPassResult(cachedObjectOf(bodyWithVersion("8")),
					changes.PassResult{Settled: true, RequeueAfter: &later}, nil)
			}, "9", false, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.ObjectState{}
			o.ApplyPassResult(cachedObjectOf(bodyWithVersion("8")), quiet, cachedObjectOf(bodyWithVersion("8")))
			if tc.happen != nil {
				tc.happen(o)
			}
			if got := o.IsEcho(cachedObjectOf(bodyWithVersion(tc.cached))); got != tc.want ||
				!o.IsEmpty() != tc.wantKept {
				t.Errorf("%s: echo %v, remembered %v", tc.reason, got, !o.IsEmpty())
			}
		})
	}
	o := &memory.ObjectState{}
	if o.ApplyPassResult(cachedObjectOf(bodyWithVersion("8")), changes.PassResult{Settled: true},
		cachedObjectOf(bodyWithVersion("8"))); !o.IsEmpty() {
		t.Error("without a write an echo is expected")
	}
}

// TestNewestIsDecodedOnce shows that a pass uses one decoded state, which memory does not keep between passes.
func TestNewestIsDecodedOnce(t *testing.T) {
	objects, object := memory.NewObjects(), cachedObjectOf(bodyWithVersion("1"))
	newest := func(o *memory.ObjectState, cached *compact.CachedObject) *jsontext.LazyObject {
		opened, err := o.NewestState(cached)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	o := objects.BeginPass("u")
	first := newest(o, object)
	if !first.IsDecoded() || newest(o, object) != first {
		t.Error("the same state was opened twice in a pass")
	}
	if later := newest(o, cachedObjectOf(bodyWithVersion("2"))); later == first {
		t.Error("a later state was taken for the former one")
	}
	first = newest(o, object)
	objects.EndPass("u", o)
	if newest(o, object) == first {
		t.Error("memory keeps a decoded object after the pass")
	}
}
