package conditions_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
)

var (
	formerTransition = "2026-01-01T00:00:00Z"
	now              = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	nowText          = "2026-02-03T04:05:06Z"
)

// conditionItem returns a condition of the second generation, as it is written.
func conditionItem(conditionType, status, reason, message, moved string) map[string]any {
	return map[string]any{
		"type": conditionType, "status": status, "reason": reason, "message": message, "lastTransitionTime": moved,
		"observedGeneration": int64(2),
	}
}

func objectWithStatus(status any) map[string]any {
	return map[string]any{"metadata": map[string]any{"generation": int64(2)}, "status": status}
}

// statusWith returns a status with a list of conditions for the second generation.
func statusWith(items ...any) map[string]any {
	return map[string]any{"conditions": items, "observedGeneration": int64(2)}
}

func defaultTypes(t *testing.T) conditions.Types {
	t.Helper()
	types, err := conditions.NewTypes("")
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func TestApply(t *testing.T) {
	ok := conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded", formerTransition)
	stalled := []any{
		conditionItem("Ready", "False", "Failed", `handler "a" failed permanently: no`, formerTransition),
		conditionItem("Stalled", "True", "Failed", `handler "a" failed permanently: no`, formerTransition),
	}
	retried := []any{
		conditionItem("Ready", "False", "Retrying", `handler "b", attempt 1: wait`, formerTransition),
		conditionItem("Stalled", "False", "FailedBefore", `handler "a" failed permanently: no`, nowText),
		conditionItem("Reconciling", "True", "Retrying", `handler "b", attempt 1: wait`, nowText),
	}
	done := conditions.HandlerProgress{ID: "a", Attempts: 1, Succeeded: true}
	failed := conditions.HandlerProgress{ID: "a", Attempts: 1, Failed: true, Message: "no"}
	waiting := conditions.HandlerProgress{ID: "b", Attempts: 1, Message: "wait"}
	for name, c := range map[string]struct {
		reason   string
		held     any
		resumed  bool
		outcomes []conditions.HandlerProgress
		want     any
	}{
		"all have succeeded at once": {
			"the first success sets Ready", nil, false, []conditions.HandlerProgress{done},
			statusWith(conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded", nowText)),
		},
		"no handler is concerned": {
			"an object without handlers gets Ready, so that clients can wait for it", nil, false, nil,
			statusWith(conditionItem("Ready", "True", "Succeeded", "no handler had to be called", nowText)),
		},
		"again": {"an unchanged condition keeps its time", statusWith(ok), false, []conditions.HandlerProgress{done},
			statusWith(ok)},
		"no handler for a change": {
			"a change without handlers keeps the conditions", statusWith(ok), false, nil, statusWith(ok),
		},
		"an error": {
			"a retried error sets Ready to False and Reconciling to True", statusWith(ok), false,
			[]conditions.HandlerProgress{waiting},
			statusWith(
				conditionItem("Ready", "False", "Retrying", `handler "b", attempt 1: wait`, nowText),
				conditionItem("Reconciling", "True", "Retrying", `handler "b", attempt 1: wait`, nowText),
			),
		},
		"a wait": {
			"a wait for another object is not reported as a retry", statusWith(ok), false,
			[]conditions.HandlerProgress{{ID: "b", Awaited: "ConfigMap a"}, {ID: "c"}},
			statusWith(
				conditionItem("Ready", "False", "Progressing",
					`handler "b" waits for ConfigMap a; handler "c" is not called yet`, nowText),
				conditionItem("Reconciling", "True", "Progressing",
					`handler "b" waits for ConfigMap a; handler "c" is not called yet`, nowText),
			),
		},
		"a success after an error": {
			"a success after an error removes Reconciling", statusWith(
				conditionItem("Ready", "False", "Retrying", "wait", formerTransition),
				conditionItem("Reconciling", "True", "Retrying", "wait", formerTransition),
			), false, []conditions.HandlerProgress{done},
			statusWith(conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded", nowText)),
		},
		"a handler that was not called yet": {
			"a handler without attempts is reported as in progress", nil, false,
			[]conditions.HandlerProgress{done, {ID: "b"}},
			statusWith(
				conditionItem("Ready", "False", "Progressing", `handler "b" is not called yet`, nowText),
				conditionItem("Reconciling", "True", "Progressing", `handler "b" is not called yet`, nowText),
			),
		},
		"a permanent failure": {
			"a permanent failure sets Stalled, which kstatus reports as failed", statusWith(ok), false,
			[]conditions.HandlerProgress{failed, {ID: "c", Succeeded: true}},
			statusWith(
				conditionItem("Ready", "False", "Failed", `handler "a" failed permanently: no`, nowText),
				conditionItem("Stalled", "True", "Failed", `handler "a" failed permanently: no`, nowText),
			),
		},
		"a failure beside a retry": {
			"a retry beside a permanent failure hides neither of them", nil, false,
			[]conditions.HandlerProgress{failed, waiting},
			statusWith(
				conditionItem("Ready", "False", "Retrying",
					`handler "a" failed permanently: no; handler "b", attempt 1: wait`, nowText),
				conditionItem("Reconciling", "True", "Retrying", `handler "b", attempt 1: wait`, nowText),
			),
		},
		"an object that does not fit": {
			"an object that a handler cannot decode is reported as blocked", nil, false,
			[]conditions.HandlerProgress{{ID: "a", Blocked: true, Message: "no number"}},
			statusWith(
				conditionItem("Ready", "False", "Blocked", `handler "a" waits until the object is changed: no number`,
					nowText),
				conditionItem("Stalled", "True", "Blocked", `handler "a" waits until the object is changed: no number`,
					nowText),
			),
		},
		"a retry after a failure": {
			"a retry keeps the earlier failure in Stalled, set to False", statusWith(stalled...), false,
			[]conditions.HandlerProgress{waiting}, statusWith(retried...),
		},
		"that change is taken back": {
			"reverting the retried change restores the earlier failure", statusWith(retried...), false, nil, statusWith(
				conditionItem("Ready", "False", "Failed", `handler "a" failed permanently: no`, formerTransition),
				conditionItem("Stalled", "True", "Failed", `handler "a" failed permanently: no`, nowText),
			),
		},
		"that change succeeds": {
			"a later success of the retried handler clears the earlier failure", statusWith(retried...), false,
			[]conditions.HandlerProgress{{ID: "b", Succeeded: true}},
			statusWith(conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded", nowText)),
		},
		"no handler after a failure": {
			"a change without handlers does not clear a failure", statusWith(stalled...), false, nil,
			statusWith(stalled...),
		},
		"another handler's resume after a failure": {
			"a resume of another handler does not clear a failure", statusWith(stalled...), true,
			[]conditions.HandlerProgress{{ID: "b", Succeeded: true}}, statusWith(stalled...),
		},
		"its own resume after a failure": {
			"a successful resume of the failed handler clears the failure", statusWith(stalled...), true,
			[]conditions.HandlerProgress{done},
			statusWith(conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded", nowText)),
		},
		"others' conditions": {
			"conditions of others keep their place and fields; own duplicates are merged",
			map[string]any{"conditions": []any{
				"odd", map[string]any{"type": "Other", "own": "x"},
				map[string]any{"type": "Ready", "status": "True", "probed": "y"}, map[string]any{"type": "Ready"},
				map[string]any{"type": "Last"},
			}, "phase": "up"}, false, []conditions.HandlerProgress{done},
			map[string]any{"conditions": []any{
				"odd", map[string]any{"type": "Other", "own": "x"},
				map[string]any{
					"type": "Ready", "status": "True", "reason": "Succeeded", "message": "all handlers have succeeded",
					"lastTransitionTime": nowText, "observedGeneration": int64(2), "probed": "y",
				},
				map[string]any{"type": "Last"},
			}, "phase": "up", "observedGeneration": int64(2)},
		},
		"conditions of another shape": {
			"conditions that are not a list stay as they are",
			map[string]any{"conditions": map[string]any{"Ready": true}}, false,
			[]conditions.HandlerProgress{done}, map[string]any{"conditions": map[string]any{"Ready": true}},
		},
		"no mapping": {"a status that is not a mapping gets no conditions", "up", false,
			[]conditions.HandlerProgress{done},
			map[string]any(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			body := objectWithStatus(c.held)
			got, changed := defaultTypes(t).Apply(
				body, conditions.Report{Generation: 2, Resumed: c.resumed, Outcomes: c.outcomes}, now)
			if d := cmp.Diff(c.want, any(got)); d != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, d)
			}
			if _, mapping := c.held.(map[string]any); mapping && changed == cmp.Equal(c.held, c.want) {
				t.Errorf("%s: got changed=%t", c.reason, changed)
			}
			if d := cmp.Diff(objectWithStatus(c.held), body); d != "" {
				t.Errorf("Apply must not change the object itself:\n%s", d)
			}
		})
	}
}

// TestTimesGoOn shows that conditions keep their times when a handler replaces the whole list and removes those of the
// framework.
func TestTimesGoOn(t *testing.T) {
	former := objectWithStatus(statusWith(conditionItem("Ready", "True", "Succeeded", "all handlers have succeeded",
		formerTransition)))
	report := conditions.Report{
		Generation: 2, Outcomes: []conditions.HandlerProgress{{ID: "a", Succeeded: true}}, Former: former,
	}
	status, _ := defaultTypes(t).Apply(objectWithStatus(map[string]any{"conditions": []any{}}), report, now)
	if d := cmp.Diff(former["status"], any(status)); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestObservedGeneration shows that a newer generation, observed by another operator, is kept, unless the object was
// restored from a backup.
func TestObservedGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		reason                                              string
		presentGeneration                                   any
		handledGeneration, objectGeneration, wantGeneration int64
	}{
		"none":       {"a missing generation is added", nil, 3, 3, 3},
		"behind":     {"an older generation is replaced by the handled one", int64(2), 3, 4, 3},
		"ahead":      {"a newer generation of another operator stays", int64(4), 3, 4, 4},
		"impossible": {"a generation above that of the object is replaced", int64(9), 3, 4, 3},
		"a default":  {"the default of the CRD is replaced", int64(-1), 3, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			body := objectWithStatus(map[string]any{"observedGeneration": c.presentGeneration})
			body["metadata"] = map[string]any{"generation": c.objectGeneration}
			status, _ := defaultTypes(t).Apply(body, conditions.Report{Generation: c.handledGeneration}, now)
			if status["observedGeneration"] != c.wantGeneration {
				t.Errorf("%s: %v", c.reason, status["observedGeneration"])
			}
		})
	}
	plain, _ := defaultTypes(t).Apply(map[string]any{}, conditions.Report{}, now)
	list, _ := plain["conditions"].([]any)
	if ready, _ := list[0].(map[string]any); ready["observedGeneration"] != nil || plain["observedGeneration"] != nil {
		t.Errorf("a kind without generations must not get any: %v", plain)
	}
}

func TestTextsAreBounded(t *testing.T) {
	var many []conditions.HandlerProgress
	for range 100 {
		many = append(many, conditions.HandlerProgress{ID: "h", Attempts: 1, Message: strings.Repeat("ä", 4000)})
	}
	status, _ := defaultTypes(t).Apply(map[string]any{}, conditions.Report{Outcomes: many}, now)
	list, _ := status["conditions"].([]any)
	for _, one := range list {
		text, _ := one.(map[string]any)["message"].(string)
		if len(text) > 1024 || !strings.HasSuffix(text, "…") || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("the message has %d bytes, want at most 1024, cut between characters: %s", len(text), text)
		}
	}
}
