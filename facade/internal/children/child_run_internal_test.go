package children

import "testing"

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status}}}
	}
	one := map[string]any{"succeeded": int64(1)}
	for name, c := range map[string]struct {
		kind         string
		spec, status map[string]any
		want         outcome
	}{
		"complete":                            {"Job", nil, condition("Complete", "True"), outcomeSucceeded},
		"failed":                              {"Job", nil, condition("Failed", "True"), outcomeFailed},
		"about to fail":                       {"Job", nil, condition("FailureTarget", "True"), ""},
		"not failed":                          {"Job", nil, condition("Failed", "False"), ""},
		"a task that has failed":              {"TaskRun", nil, condition("Succeeded", "False"), outcomeFailed},
		"a task that runs":                    {"TaskRun", nil, condition("Succeeded", "Unknown"), ""},
		"a phase":                             {"Pod", nil, map[string]any{"phase": "Succeeded"}, outcomeSucceeded},
		"a phase of failure":                  {"Pod", nil, map[string]any{"phase": "Failed"}, outcomeFailed},
		"another phase":                       {"Pod", nil, map[string]any{"phase": "Running"}, ""},
		"one completion":                      {"Job", nil, one, outcomeSucceeded},
		"some of the completions":             {"Job", map[string]any{"completions": int64(2)}, one, ""},
		"a queue of work":                     {"Job", map[string]any{"parallelism": int64(2)}, one, ""},
		"a TaskRun with a count of successes": {"TaskRun", nil, one, ""},
		"no status":                           {"Job", nil, nil, ""},
		"a status of another form": {"Job", nil, map[string]any{"conditions": "none", "phase": int64(1)},
			""},
	} {
		object := map[string]any{"apiVersion": "batch/v1", "kind": c.kind, "spec": c.spec, "status": c.status}
		if got := outcomeOf(object); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestDigestLeavesOutEmptyFields shows that a new empty field, as from an upgraded API package, does not run a job
// again.
func TestDigestLeavesOutEmptyFields(t *testing.T) {
	t.Parallel()
	job := func(resources any, command ...any) map[string]any {
		return map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "a", "resources": resources, "command": command},
		}}}
	}
	if a, b := digestOf(job(map[string]any{})), digestOf(job(nil)); a != b || len(a) != 16 {
		t.Errorf("empty fields change the digest: %q, %q", a, b)
	}
	if a, b := digestOf(job(nil, "a", "")), digestOf(job(nil, "", "a")); a == b {
		t.Error("the order of a list does not change the digest")
	}
}
