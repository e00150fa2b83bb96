package kopf_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

var configMapResource = memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}

// runOnObject runs an operator on one object with labels, calls the function, and compares the recorded calls.
func runOnObject(
	t *testing.T, labels map[string]any, register func(s kopf.Selection[*kopf.Unstructured], seen *journal),
	then func(label func(map[string]any)), want ...string,
) {
	synctest.Test(t, func(t *testing.T) {
		server, seen := memapi.New(), &journal{}
		server.Put(configMapResource, map[string]any{"metadata": map[string]any{"namespace": "ns", "name": "w1",
			"labels": labels}})
		op := kopf.New("beliefs.example.org", kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		register(kopf.ForResource(op, "configmaps"), seen)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		time.Sleep(10 * time.Second)
		then(func(labels map[string]any) {
			server.Edit(configMapResource, "ns", "w1", func(body map[string]any) {
				body["metadata"].(map[string]any)["labels"] = labels
			})
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		seen.requireLines(t, want...)
	})
}

func recordCall(seen *journal, what string) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(context.Context, *kopf.Change[*kopf.Unstructured]) error { seen.add(what); return nil }
}

// TestResumeIsNotMixedIntoACreation shows that a creation does not call resume handlers. Deviation:
// K-resume-creation.
func TestResumeIsNotMixedIntoACreation(t *testing.T) {
	runOnObject(t, nil, func(s kopf.Selection[*kopf.Unstructured], seen *journal) {
		s.OnResume("r", recordCall(seen, "resume"))
		s.OnCreate("c", recordCall(seen, "create"))
	}, func(func(map[string]any)) {}, "create")
}

// TestHandlerThatKeepsObjectsInScope shows that a handler without a label filter keeps objects in scope, so that a
// label change is an update; a handler of an absent field does not. Deviation: K-dummy-field.
func TestHandlerThatKeepsObjectsInScope(t *testing.T) {
	relabel := func(label func(map[string]any)) { label(map[string]any{"on": "1"}) }
	runOnObject(t, nil, func(s kopf.Selection[*kopf.Unstructured], seen *journal) {
		s.OnField("keep", "spec.nonexistent", recordCall(seen, "never"))
		s.MatchingLabels("on").OnCreate("c", recordCall(seen, "create"))
		s.MatchingLabels("on").OnUpdate("u", recordCall(seen, "update"))
	}, relabel, "create")
	runOnObject(t, nil, func(s kopf.Selection[*kopf.Unstructured], seen *journal) {
		s.OnUpdate("keep", recordCall(seen, "keep"))
		s.MatchingLabels("on").OnCreate("c", recordCall(seen, "create"))
		s.MatchingLabels("on").OnUpdate("u", recordCall(seen, "update"))
	}, relabel, "keep", "update")
}

// TestDaemonThatIsSelectedAgainBeforeItHasExited shows that a daemon starts again if its object matches again
// before the former run has ended. Deviation: D-daemon-respawn.
func TestDaemonThatIsSelectedAgainBeforeItHasExited(t *testing.T) {
	began := time.Time{}
	runOnObject(t, map[string]any{"on": "1"}, func(s kopf.Selection[*kopf.Unstructured], seen *journal) {
		s.MatchingLabels("on").Daemon("d", func(_ context.Context, r *kopf.Task[*kopf.Unstructured]) error {
			if began.IsZero() {
				began = time.Now()
			}
			seen.add("begins at " + time.Since(began).Truncate(time.Second).String())
			<-r.Stopping()
			if errors.Is(r.StopReason(), kopf.ErrUnmatched) {
				time.Sleep(time.Minute) // a slow exit
			}
			return nil
		}, kopf.CancelBackoff(time.Hour))
	}, func(label func(map[string]any)) {
		label(nil)
		time.Sleep(10 * time.Second)
		label(map[string]any{"on": "1"})
	}, "begins at 0s", "begins at 1m10s")
}
