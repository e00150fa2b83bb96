package peering_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// TestRemovalByStaleView shows that a suspended process that holds a stale object does not remove records of live
// peers. Otherwise, other operators would act beside them.
func TestRemovalByStaleView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemberFixture(t, vectors.Fields{}, peering.Member{})
		api, err := memapi.NewClient(b.server.Connect(), b.resource)
		if err != nil {
			t.Fatal(err)
		}
		object := b.existingObject(api, "", "default")
		me := peering.Member{
			Self: peering.Self{Identity: "me", Priority: 9, Elects: true}, Name: "default",
		}.JoinObject(t.Context(), object, peering.NewLock("me", "default"))
		write := func() map[string]any {
			t.Helper()
			seen, err := object.WriteRecord(t.Context(), "him", peering.PeerRecord{
				Lifetime: time.Minute, LastSeen: time.Now(), Runtime: "x",
			})
			if err != nil {
				t.Fatal(err)
			}
			return seen
		}
		remains := func() bool {
			status, _ := b.server.Object(b.resource, "", "default")["status"].(map[string]any)
			return status["him"] != nil
		}
		before := write()
		time.Sleep(time.Hour)
		now := write()
		if err := me.React(t.Context(), before); err == nil || !remains() {
			t.Errorf("the record of a live peer was removed; error %v", err)
		}
		time.Sleep(time.Hour)
		if err := me.React(t.Context(), now); err != nil || remains() {
			t.Errorf("the record of a dead peer remains; error %v", err)
		}
	})
}
