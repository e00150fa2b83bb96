package kopf_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
)

// ensureMany declares as many children as the spec requests: with long similar names, or with random names of 64
// characters. A record of 10,000 random names does not fit on an object.
func (c *ensureErrors) ensureMany(ctx context.Context, change *houseChange) error {
	var all []any
	for i := range kopf.GetFieldOr(change.Object, "spec.many", 0) {
		name := fmt.Sprintf("%s-%d", strings.Repeat("room", 50), i)
		if kopf.GetFieldOr(change.Object, "spec.random", false) {
			name = fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
		}
		room := newRoom()
		room.SetName(name)
		all = append(all, room)
	}
	return c.note(change.Ensure(ctx, all))
}

func (h ensureFixture) countRooms() (n int) {
	for _, object := range h.api.Objects() {
		if object["kind"] == "ConfigMap" {
			n++
		}
	}
	return n
}

// TestEnsureMany shows that more children than an uncompressed record could list are applied and pruned, also after
// a restart.
func TestEnsureMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	withEnsureFixture(t, func(h ensureFixture) {
		heard := &ensureErrors{}
		run := func() func() {
			_, stop := h.run(func(s houseSel) { s.On("ensure", nonDeleteReasons, heard.ensureMany) })
			return stop
		}
		declare := func(spec map[string]any) {
			h.api.Edit(houses, "default", "home", func(house map[string]any) { house["spec"] = spec })
			h.settle()
		}
		stop := run()
		h.createHouseAndWait()
		declare(map[string]any{"many": int64(1200)})
		if n := h.countRooms(); n != 1200 || heard.last() != nil {
			t.Errorf("1200 children are applied: got %d, error %.300v", n, heard.last())
		}
		version := h.house().GetResourceVersion()
		stop()
		stop = run()
		h.settle()
		if now := h.house().GetResourceVersion(); now != version {
			t.Errorf("a restart without changes does not write the object: versions %s, %s", version, now)
		}
		declare(map[string]any{"many": int64(10)})
		if n := h.countRooms(); n != 10 || heard.last() != nil {
			t.Errorf("all but 10 children are pruned: got %d, error %.300v", n, heard.last())
		}
		if record := h.house().GetAnnotations()[houseRecord]; !strings.Contains(record, "room-9") {
			t.Errorf("a small record is not compressed: got %.300s", record)
		}

		declare(map[string]any{"many": int64(10_000), "random": true})
		heard.requireLast(t, "10010 children", "262144 bytes")
		if n := h.countRooms(); n != 10 || !execution.IsPermanent(heard.last()) {
			t.Errorf("a record that does not fit is a permanent error: got %d children, error %.300v", n, heard.last())
		}
		stop()
	})
}
