package execution_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// storage is the default storage of Kopf.
var storage = progress.Smart{}

func TestVectorsHandlerState(t *testing.T) {
	runVectors(t, "handler_state", func(t *testing.T, input vectors.Fields) (any, error) {
		vectors.Known(t, input, "records", "owned", "selected", "purpose", "steps")
		body := bodyWith(t, input.Mapping("records"))
		now := epoch
		state, err := execution.RestoreState(
			reader(body), texts(t, input, "owned"), texts(t, input, "selected"), input.Text("purpose", ""), now,
		)
		if err != nil {
			return nil, err
		}
		got := []any{snapshot(state, now)}
		for _, item := range input.List("steps") {
			step := vectors.Known(t, item, "at", "repurpose", "outcomes", "store", "purge", "patch")
			if seconds := vectors.Number(t, step, "at"); seconds != nil {
				now = at(*seconds)
			}
			after, err := takeStep(t, state, step, body, now)
			if err != nil {
				return nil, err
			}
			got = append(got, after)
		}
		return got, nil
	})
}

// bodyWith returns an object with the records in the default storage, including malformed ones.
func bodyWith(t *testing.T, records vectors.Fields) map[string]any {
	t.Helper()
	annotations := map[string]any{}
	for id, record := range records {
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatalf("the record of %q: %v", id, err)
		}
		for _, name := range keys.AnnotationKeys(keys.KopfPrefix, id, true) {
			annotations[name] = string(text)
		}
	}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}

func reader(body map[string]any) func(string) (*progress.Record, error) {
	return func(id string) (*progress.Record, error) { return storage.Fetch(body, id) }
}

func takeStep(
	t *testing.T, state *execution.State, step vectors.Fields, body map[string]any, now time.Time,
) (map[string]any, error) {
	t.Helper()
	if purpose, ok := step["repurpose"].(string); ok {
		state.MoveToPurpose(purpose)
	}
	outcomes := step.Mapping("outcomes")
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		if err := state.ConcludeAttempt(id, outcomeFrom(t, outcomes[id]), now); err != nil {
			return nil, err
		}
	}
	got := snapshot(state, now)
	if step.Flag("store") {
		patch := patchOf(step)
		if err := state.StoreChanged(storage, patch, body); err != nil {
			return nil, err
		}
		got["patch"] = patch
	}
	if step.Flag("purge") {
		patch := patchOf(step)
		if err := state.PurgeAll(storage, patch, body); err != nil {
			return nil, err
		}
		got["purged"] = patch
	}
	return got, nil
}

// patchOf returns the initial patch of a step.
func patchOf(step vectors.Fields) map[string]any {
	if given := step.Mapping("patch"); given != nil {
		return runtime.DeepCopyJSON(given)
	}
	return map[string]any{}
}

func outcomeFrom(t *testing.T, value any) execution.Outcome {
	t.Helper()
	given := vectors.Known(t, value, "final", "delay", "error", "message", "subrefs")
	outcome := execution.Outcome{
		Final: given.Flag("final"), Delay: seconds(t, given, "delay"), Subrefs: texts(t, given, "subrefs"),
	}
	if given["error"] != nil {
		outcome.Err = errors.New(given.Text("message", ""))
	}
	return outcome
}

// snapshot returns everything that a state reports, including the accounts of passive handlers.
func snapshot(state *execution.State, now time.Time) map[string]any {
	records, runtimes := map[string]any{}, map[string]any{}
	var active, awakened, finished []string
	for _, e := range state.AllStates() {
		record := e.AsRecord().JSONFields()
		maps.DeleteFunc(record, func(_ string, value any) bool { return value == nil })
		records[e.ID], runtimes[e.ID] = record, rounded(e.Account().RuntimeAt(now))
		if e.Active {
			active = append(active, e.ID)
		}
		if e.Account().WaitReason(now).Reason == "" {
			awakened = append(awakened, e.ID)
		}
		if e.IsFinished() {
			finished = append(finished, e.ID)
		}
	}
	delays := state.NextDelays(now)
	slices.Sort(delays)
	delay, seconds := any(nil), make([]any, len(delays))
	for i, d := range slices.Backward(delays) {
		seconds[i] = rounded(d)
		delay = seconds[i]
	}
	counts, extras := state.CountByPurpose()
	others := map[string]any{}
	for purpose, c := range extras {
		others[purpose] = triple(c)
	}
	return map[string]any{
		"records": records, "runtimes": runtimes, "done": state.AllFinished(), "delay": delay, "delays": seconds,
		"active": asList(active), "awakened": asList(awakened), "finished": asList(finished),
		"counts": triple(counts), "extras": others,
	}
}

func triple(c execution.Counts) []any {
	return []any{int64(c.Success), int64(c.Failure), int64(c.Running)}
}

func asList(ids []string) []any {
	list := make([]any, len(ids))
	for i, id := range ids {
		list[i] = id
	}
	return list
}

func rounded(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e6 }
