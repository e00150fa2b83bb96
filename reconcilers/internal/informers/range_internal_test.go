package informers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// TestWatchOfRange shows what an informer gets of the events of all objects: a bookmark for each event outside of its
// range, so that it continues there when the watch breaks.
func TestWatchOfRange(t *testing.T) {
	newObject := func(uid, version string, annotations map[string]any) *compact.CachedObject {
		o, err := compact.NewFromBody(map[string]any{"metadata": map[string]any{
			"name": uid, "uid": uid, "resourceVersion": version, "annotations": annotations,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	const own, foreign = "uid-own", "uid-foreign"
	part := sharding.Range{Index: sharding.IndexOf(types.UID(own), 1000), Count: 1000}
	if part.Contains(foreign) {
		t.Fatal("both uids are in one range")
	}
	end := map[string]any{"k8s.io/initial-events-end": "true"}
	all := watch.NewFakeWithChanSize(6, false)
	all.Add(newObject(own, "1", nil))
	all.Modify(newObject(foreign, "2", nil))
	all.Delete(newObject(foreign, "3", nil))
	all.Add(newObject(foreign, "4", end)) // a client can set this annotation
	all.Action(watch.Bookmark, newObject("", "5", end))
	all.Modify(newObject(own, "6", nil))
	all.Stop()
	calls := 0
	l := &listing{interest: WatchInterest{Range: part, OnForeign: func() { calls++ }}}
	var got []string
	for event := range l.watchRange(all).ResultChan() {
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(event.Type)+" "+object.GetResourceVersion())
	}
	want := []string{"ADDED 1", "BOOKMARK 2", "BOOKMARK 3", "BOOKMARK 5", "MODIFIED 6"}
	if diff := cmp.Diff(want, got); diff != "" || calls != 3 {
		t.Errorf("the events of the range, and the versions of others, with %d calls for foreign objects: -want, "+
			"+got:\n%s", calls, diff)
	}
}
