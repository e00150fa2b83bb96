package reconcilers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// recordingFunc returns a function that records the types of its events, and the reasons of its changes.
func recordingFunc(j *journal) handlers.Func {
	return func(_ context.Context, call *handlers.Invocation) error {
		object := unstructured.Unstructured{Object: call.Cause.Body()}
		what := "event " + call.Cause.EventType
		if call.Handler.Family == handlers.Changing {
			what = call.Handler.ID + " for " + string(call.Cause.Reason)
		}
		j.add(fmt.Sprintf("%s: %s", object.GetName(), what))
		return nil
	}
}

// TestHandlersAfterAPause shows that after a pause, event handlers are called for all listed objects, change handlers
// for changes made in the pause, and resume handlers for objects that this process has not handled yet.
func TestHandlersAfterAPause(t *testing.T) {
	onServer(t, func(t *testing.T, server *memapi.Server, p directClient) {
		for _, name := range []string{"changes", "goes", "stays"} {
			p.create("ConfigMap", name)
		}
		var mu sync.Mutex
		forgotten := map[types.UID]int{}
		gone := p.get("ConfigMap", "goes").GetUID()
		j, gate := &journal{startTime: time.Now()}, &reconcilers.Gate{}
		o := reconcilers.Options{Gate: gate, OnGone: func(uid types.UID) {
			mu.Lock()
			defer mu.Unlock()
			forgotten[uid]++
		}}
		other := operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", handles("u", cause.Create, &journal{})))
		time.Sleep(time.Second)
		other() // all objects have been handled
		stop := operateAll(t, server, o,
			registrationFor(t, "configmaps", &handlers.Handler{ID: "e", Family: handlers.Watching,
				Call: recordingFunc(j)}),
			registrationFor(t, "configmaps", handles("u", cause.Update, j)),
			registrationFor(t, "configmaps", handles("c", cause.Create, j)),
			registrationFor(t, "configmaps", &handlers.Handler{ID: "r", Initial: true, Call: recordingFunc(j)}))
		defer stop()
		time.Sleep(time.Second)
		requireRecords(t, j, "at the start", "changes: event ", "changes: r for resume", "goes: event ",
			"goes: r for resume",
			"stays: event ", "stays: r for resume")
		gate.Set(true)
		time.Sleep(time.Second)
		other = operateAll(t, server, reconcilers.Options{},
			registrationFor(t, "configmaps", handles("x", cause.Create, &journal{})))
		p.create("ConfigMap", "handled")
		time.Sleep(time.Minute)
		other()
		p.create("ConfigMap", "unhandled")
		p.merge("ConfigMap", "changes", `{"data":{"a":"b"}}`)
		p.remove("ConfigMap", "goes")
		time.Sleep(time.Hour)
		requireRecords(t, j, "in the pause")
		gate.Set(false)
		time.Sleep(time.Second)
		requireRecords(t, j, "after the pause", "changes: event ", "changes: event MODIFIED", "changes: u for update",
			"handled: event ", "handled: r for resume", "stays: event ", "unhandled: c for create", "unhandled: event ",
			"unhandled: event MODIFIED")
		if mu.Lock(); len(forgotten) != 1 || forgotten[gone] != 1 {
			t.Errorf("forgotten: %v, want %s once", forgotten, gone)
		}
		mu.Unlock()
	})
}

// handles returns a handler of changes that records its calls.
func handles(id string, reason cause.Reason, j *journal) *handlers.Handler {
	return &handlers.Handler{ID: id, Reason: reason, Call: recordingFunc(j)}
}

// requireRecords compares and removes the records, sorted.
func requireRecords(t *testing.T, j *journal, when string, lines ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var got []string
	for _, line := range j.lines {
		_, what, _ := strings.Cut(line, " ")
		got = append(got, what)
	}
	j.lines = nil
	slices.Sort(got)
	if d := cmp.Diff(lines, got); d != "" {
		t.Errorf("%s: -want, +got:\n%s", when, d)
	}
}
