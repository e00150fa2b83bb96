package reconcilers_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// tolerance is the maximum difference of times: this engine knows the outcome of its own writes at once, and a manager
// needs a moment to start.
const tolerance = 1.5

// TestVectorsCycle replays whole runs of Kopf with the engine, its manager, caches and queues, and an API server in
// memory.
func TestVectorsCycle(t *testing.T) {
	vectors.Run(t, "cycle", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		var log []any
		var final any
		vectors.Bubble(t, func(t *testing.T) { log, final = replay(t, input) })
		expected := vectors.Known(t, want.Value, "log", "final")
		timed := input["latency"] == nil
		compare(t, "calls of change handlers", logged(expected.List("log"), false), logged(log, false), timed)
		compare(t, "calls of event handlers", logged(expected.List("log"), true), logged(log, true), timed)
		if want, got := compared(t, expected["final"]), compared(t, final); !equalWithin(want, got) {
			t.Errorf("the final object: -want, +got:\n%s", cmp.Diff(want, got))
		}
	})
}

// replay runs the operator on the clock of the vectors, so that times in the objects equal those of Kopf's runs.
func replay(t *testing.T, input vectors.Fields) (log []any, final any) {
	vectors.Known(t, input, "until", "object", "handlers", "timeline", "lifecycle", "resource", "with_diffs",
		"interferences",
		"failures", "diffbase", "progress", "latency", "settings")
	const listing = 5 * time.Second // until the first listing has ended
	time.Sleep(time.Until(kopfStart.Add(-listing)))
	r := newRun(t, input)
	options := r.options()
	timeline := make([]vectors.Fields, 0, len(input.List("timeline")))
	for _, item := range input.List("timeline") {
		timeline = append(timeline, vectors.Known(t, item, "at", "op", "patch"))
	}
	first := timeline[0].Text("op", "")
	if first == "list" {
		r.server.Put(r.resource, r.original)
	} else {
		r.start(t.Context(), options)
	}
	time.Sleep(time.Until(kopfStart))
	switch first {
	case "list", "add":
	default:
		r.connection.hideCreation() // the first event has the object as it is then
		r.server.Put(r.resource, r.original)
	}
	for i, step := range timeline {
		time.Sleep(time.Until(at(step["at"])))
		if i == 0 && first == "list" {
			r.start(t.Context(), options)
			continue
		}
		r.play(t.Context(), step, options)
	}
	time.Sleep(time.Until(at(input["until"])))
	synctest.Wait()
	r.close() // as Kopf's runs are cut off
	r.stop()
	if object := r.object(); object != nil {
		return r.log, object
	}
	return r.log, nil
}

// at returns a time of the run, or of the objects in it.
func at(seconds any) time.Time {
	return kopfStart.Add(time.Duration(number(seconds) * float64(time.Second)))
}

// logged returns the compared entries of the log: those of event handlers, with own patches merged, or all others.
func logged(log []any, ofEvents bool) (some []map[string]any) {
	for _, item := range log {
		entry, _ := item.(map[string]any)
		if what := entry["what"]; what != "call" && what != "restarted" && what != "exit" && what != "cancelled" {
			continue
		}
		if _, isEvent := entry["type"]; isEvent != ofEvents {
			continue
		}
		if last := len(some) - 1; ofEvents && last >= 0 && entry["type"] == "MODIFIED" &&
			some[last]["type"] == "MODIFIED" {
			continue
		}
		some = append(some, entry)
	}
	return some
}

func compare(t *testing.T, what string, want, got []map[string]any, timed bool) {
	t.Helper()
	same := len(want) == len(got)
	for i := 0; same && i < len(want); i++ {
		same = equalEntries(want[i], got[i], timed)
	}
	if !same {
		t.Errorf("%s:\n want %s\n  got %s", what, texts(want), texts(got))
	}
}

func texts(entries []map[string]any) string {
	text := ""
	for _, entry := range entries {
		text += fmt.Sprintf("\n      %v", entry)
	}
	return text
}

func equalEntries(want, got map[string]any, timed bool) bool {
	for _, both := range []map[string]any{want, got} {
		for key := range both {
			if key == "t" || key == "runtime" {
				if timed && math.Abs(number(want[key])-number(got[key])) > tolerance {
					return false
				}
			} else if !diff.Equal(want[key], got[key]) {
				return false
			}
		}
	}
	return true
}

func number(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case float64:
		return value
	default:
		return math.NaN()
	}
}

// ignoredAnnotations are annotations of the final object that are not significant.
var ignoredAnnotations = []string{"handled-uid", "handling-configuration", "touch-dummy"}

// compared returns the final object for the comparison: with decoded annotations, and without fields that servers add.
func compared(t *testing.T, object any) any {
	t.Helper()
	body, ok := object.(map[string]any)
	if !ok {
		return nil
	}
	body = runtime.DeepCopyJSON(body)
	metadata, _ := body["metadata"].(map[string]any)
	for _, key := range []string{"resourceVersion", "generation", "creationTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, key)
	}
	if metadata["deletionTimestamp"] != nil {
		metadata["deletionTimestamp"] = "set by the server"
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		for _, name := range ignoredAnnotations {
			if strings.HasSuffix(key, "/"+name) {
				delete(annotations, key)
			}
		}
		var decoded any
		if text, ok := value.(string); ok && strings.HasPrefix(text, "{") && json.Unmarshal(
			[]byte(text), &decoded,
		) == nil {
			annotations[key] = decoded
		}
	}
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return body
}

// equalWithin compares values with a tolerance for timestamps.
func equalWithin(want, got any) bool {
	wanted, isMapping := want.(map[string]any)
	given, wasMapping := got.(map[string]any)
	if !isMapping || !wasMapping {
		return diff.Equal(want, got) || equalTimes(want, got)
	}
	if len(wanted) != len(given) {
		return false
	}
	for key, value := range wanted {
		other, ok := given[key]
		if !ok || !equalWithin(value, other) {
			return false
		}
	}
	return true
}

func equalTimes(want, got any) bool {
	a, wasText := want.(string)
	b, isText := got.(string)
	if !wasText || !isText {
		return false
	}
	then, err := time.Parse(time.RFC3339Nano, a)
	now, other := time.Parse(time.RFC3339Nano, b)
	return err == nil && other == nil && math.Abs(then.Sub(now).Seconds()) <= tolerance
}

// kopfStart is the time at which all runs begin.
var kopfStart = time.Date(2024, 5, 6, 7, 8, 9, 123456000, time.UTC)
