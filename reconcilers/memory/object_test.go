package memory_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/changes"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/compact/compacttest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/memory"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func body(version string) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": version}}
}

// cached is nil for no object.
func cached(body map[string]any) *compact.Object {
	if body == nil {
		return nil
	}
	return compacttest.Of(body)
}

// versionOf is that of the newest state beside a cache with the version.
func versionOf(o *memory.Object, version string) string {
	newest, err := o.Newest(cached(body(version)))
	if err != nil {
		return err.Error()
	}
	return newest.String("metadata", "resourceVersion")
}

func TestCatchUp(t *testing.T) {
	tests := map[string]struct {
		reason string
		cached string
		want   string // the version of what is handled
		kept   bool
	}{
		"Malformed": {"versions that cannot be compared prove nothing", "x", "9", true},
		"None":      {"an object without a version proves nothing", "", "9", true},
		"Behind":    {"our write is not there yet", "8", "9", true},
		"There":     {"our write is there", "9", "9", false},
		"Longer":    {"versions are numbers, not texts", "10", "10", false},
		"Ahead":     {"an edit after our write is there", "11", "11", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.Object{}
			o.Wrote(body("9"), false)
			if got := versionOf(o, tc.cached); got != tc.want {
				t.Errorf("%s: got version %s, want %s", tc.reason, got, tc.want)
			}
			if kept := keepsWrite(o); kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}

// keepsWrite tells whether the object knows a write that a cache may not have.
func keepsWrite(o *memory.Object) bool {
	return versionOf(o, "") != ""
}

// An object that the API server does not find needs nothing to be remembered but that, until the cache knows it.
func TestProceedWithoutTheObject(t *testing.T) {
	cached := compacttest.Of(body("5"))
	all := memory.NewObjects()
	o := all.Take("u1")
	o.Throttle.Fail(settings.DefaultErrorDelays, 0, time.Now())
	o.Blocks("something")
	o.Wrote(body("6"), false)
	o.Proceed(cached, changes.Next{Gone: true}, cached)
	if !o.Past(cached) || keepsWrite(o) || o.Throttle != (memory.Throttle{}) || !o.Blocks("something") {
		t.Errorf("an object that is no more needs nothing but that: %+v", o)
	}
	o = all.Take("u1")
	o.Proceed(cached, changes.Next{Gone: true}, cached)
	if all.Put("u1", o); all.Len() != 1 {
		t.Error("this must be remembered until the cache knows it")
	}
}

// What we wrote before the end comes to the cache before the end does. Only a version that is none of ours may mean
// that the API server was wrong.
func TestPast(t *testing.T) {
	tests := map[string]struct {
		reason  string
		written map[string]any
		now     map[string]any
		cached  string
		want    bool
	}{
		"Same":       {"the cache has not moved", nil, body("5"), "5", true},
		"OwnWrite":   {"we wrote before the end", body("7"), body("5"), "7", true},
		"ForeignOne": {"somebody else did, and the cache knew of it by then", nil, body("8"), "8", true},
		"Between":    {"it was past when we wrote", body("7"), body("5"), "6", true},
		"Later":      {"the API server has it after all", body("7"), body("5"), "9", false},
		"NoNumber":   {"nobody knows", nil, body("5"), "x", false},
		"Forgotten":  {"the cache has nothing any more", body("7"), nil, "6", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.Object{}
			o.Proceed(cached(body("5")), changes.Next{Gone: true, Written: jsontext.Of(tc.written)}, cached(tc.now))
			if got := o.Past(cached(body(tc.cached))); got != tc.want {
				t.Errorf("%s: past is %v", tc.reason, got)
			}
		})
	}
}

// A pass ends beside a cache that moves on: what is kept of our write depends on what the cache has of this very object
// by then.
func TestProceedBesideTheCache(t *testing.T) {
	body := func(uid, version string) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": uid, "resourceVersion": version}}
	}
	tests := map[string]struct {
		reason string
		now    map[string]any
		kept   bool
	}{
		"Same":      {"our write is yet to come", body("u1", "5"), true},
		"There":     {"our write has come meanwhile", body("u1", "9"), false},
		"Nothing":   {"whoever tells of the end forgets the object", nil, true},
		"Successor": {"the versions of another object say nothing about this one", body("u2", "10"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.Object{}
			o.Proceed(cached(body("u1", "5")), changes.Next{Written: jsontext.Of(body("u1", "9"))}, cached(tc.now))
			if kept := keepsWrite(o); kept != tc.kept {
				t.Errorf("%s: kept: %v", tc.reason, kept)
			}
		})
	}
}

// While objects are created faster than they are handled, each of them waits with our own write.
func TestWritesTakeLittleBetweenPasses(t *testing.T) {
	const many, limit = 1000, 2000 // decoded, an object of this form takes over 10,000 bytes
	wide := func(n int) map[string]any {
		spec := map[string]any{}
		for field := range 50 {
			spec[fmt.Sprint("field-", field)] = map[string]any{"value": fmt.Sprint("some text ", n)}
		}
		return map[string]any{"metadata": map[string]any{"resourceVersion": "9"}, "spec": spec}
	}
	all, used := memory.NewObjects(), heap()
	for n := range many {
		uid := types.UID(fmt.Sprint("u", n))
		o := all.Take(uid)
		o.Wrote(wide(n), false)
		all.Put(uid, o)
	}
	if added := heap() - used; added > many*limit {
		t.Errorf("an object takes %d bytes between passes", added/many)
	}
	newest, err := all.Take("u7").Newest(cached(body("8")))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := newest.Value(); err != nil || cmp.Diff(wide(7), got) != "" {
		t.Errorf("what was written: error %v, -want, +got\n%s", err, cmp.Diff(wide(7), got))
	}
	if got := versionOf(all.Take("u8"), "10"); got != "10" {
		t.Errorf("the cache is ahead of a write of a former pass: got version %s", got)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestEchoes(t *testing.T) {
	quiet := changes.Next{Settled: true, Written: jsontext.Of(body("9"))}
	later := time.Minute
	tests := map[string]struct {
		reason string
		happen func(o *memory.Object)
		cached string
		want   bool
		left   bool // something is remembered afterwards
	}{
		"Echo":      {"it is our own write", nil, "9", true, false},
		"Before":    {"our write is to come yet", nil, "8", true, true},
		"Ahead":     {"others have written after us", nil, "10", false, false},
		"NoNumber":  {"nobody knows", nil, "x", false, true},
		"Unsettled": {"a pass was asked for", (*memory.Object).Unsettle, "9", false, true},
		"Written": {
			"nobody has looked at that yet", func(o *memory.Object) { o.Wrote(body("10"), false) }, "9", false, true,
		},
		"Initial": {"it is to be resumed", func(o *memory.Object) { o.Changes.Initial = true }, "9", false, true},
		"Looked": {
			"the last look has found something", func(o *memory.Object) {
				o.Proceed(cached(body("8")), changes.Next{}, nil)
			}, "9", false, true,
		},
		"Delayed": {
			"an attempt is to come", func(o *memory.Object) {
				o.Proceed(cached(body("8")), changes.Next{Settled: true, After: &later}, nil)
			}, "9", false, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &memory.Object{}
			o.Proceed(cached(body("8")), quiet, cached(body("8")))
			if tc.happen != nil {
				tc.happen(o)
			}
			if got := o.Echoes(cached(body(tc.cached))); got != tc.want || !o.Unknown() != tc.left {
				t.Errorf("%s: echo %v, remembered %v", tc.reason, got, !o.Unknown())
			}
		})
	}
	o := &memory.Object{}
	if o.Proceed(cached(body("8")), changes.Next{Settled: true}, cached(body("8"))); !o.Unknown() {
		t.Error("without a write there is no echo to wait for")
	}
}

// All that a pass does with an object uses one decoded state. Between passes, memory does not keep it.
func TestNewestIsDecodedOnce(t *testing.T) {
	objects, object := memory.NewObjects(), cached(body("1"))
	newest := func(o *memory.Object, cached *compact.Object) *jsontext.Object {
		opened, err := o.Newest(cached)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	o := objects.Take("u")
	first := newest(o, object)
	if !first.Decoded() || newest(o, object) != first {
		t.Error("the same state was opened twice in a pass")
	}
	if later := newest(o, cached(body("2"))); later == first {
		t.Error("a later state was taken for the former one")
	}
	first = newest(o, object)
	objects.Put("u", o)
	if newest(o, object) == first {
		t.Error("memory keeps a decoded object after the pass")
	}
}
