package kopf_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// forgeRecord replaces the record of children on the object, as a tenant could. The record has the UID of the object as
// %s.
func (h ensureFixture) forgeRecord(record string) {
	h.api.Edit(houses, "default", "home", func(house map[string]any) {
		one := &unstructured.Unstructured{Object: house}
		annotations := one.GetAnnotations()
		annotations[houseRecord] = fmt.Sprintf(record, one.GetUID())
		one.SetAnnotations(annotations)
	})
}

const (
	forgedRetained = `{"parent":"%s","children":{},"retained":{"v1/ConfigMap/yard/d":""}}`
	forgedVersion  = `{"parent":"%s","children":{"v9/ConfigMap/yard/d":""}}`
)

// TestEnsureDeletesInSpiteOfAForgedRecord shows that a child is deleted with its parent and pruned even if a forged
// record marks it as retained or has a version that is not served.
func TestEnsureDeletesInSpiteOfAForgedRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, tc := range map[string]struct {
		record    string
		restarted bool // the running process has not applied the child itself
	}{
		"Retained":              {record: forgedRetained},
		"RetainedAfterARestart": {record: forgedRetained, restarted: true},
		"Version":               {record: forgedVersion},
		"VersionAfterARestart":  {record: forgedVersion, restarted: true},
	} {
		for action, act := range map[string]func(h ensureFixture){
			"Delete": func(h ensureFixture) { h.api.Delete(houses, "default", "home") },
			"Prune":  func(h ensureFixture) { h.changeRooms("a=1") },
		} {
			t.Run(name+action, func(t *testing.T) {
				withEnsureFixture(t, func(h ensureFixture) {
					_, stop := h.runEnsure()
					h.createHouseAndWait("a=1", "yard/d=1")
					if tc.restarted {
						stop()
					}
					h.forgeRecord(tc.record)
					if tc.restarted {
						act(h)
						_, stop = h.runEnsure()
					} else {
						act(h)
					}
					h.settle()
					if h.room("yard", "d") != nil {
						t.Errorf("the child is deleted in spite of the forged record: the parent is %v",
							h.api.Object(houses, "default", "home"))
					}
					stop()
				})
			})
		}
	}
}
