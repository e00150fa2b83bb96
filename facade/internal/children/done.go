package children

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// outcome is how a child has ended; empty as long as it has not.
type outcome string

// Children that have succeeded or failed were seen so. A vanished one is gone, and its end was not seen.
const (
	succeeded outcome = "succeeded"
	failed    outcome = "failed"
	vanished  outcome = "vanished"
)

// run is the record of a child that is made until it is done: the digest of the applied declaration, and the outcome.
// The zero value is a child that was not applied yet.
type run struct {
	digest  string
	outcome outcome
}

// String is the form in a record: "<digest> <outcome>".
func (r run) String() string { return strings.TrimSpace(r.digest + " " + string(r.outcome)) }

func parseRun(text string) run {
	digest, ended, _ := strings.Cut(text, " ")
	return run{digest, outcome(ended)}
}

// then merges a later state into the run. The outcome of one declaration stays known.
func (r run) then(later run) run {
	if later.digest == "" {
		return r
	}
	if later.digest == r.digest {
		later.outcome = cmp.Or(later.outcome, r.outcome)
	}
	return later
}

// digestOf returns the digest of a declared object. Empty fields do not count: which of them a Go type has differs
// between versions of its package, and an upgrade must not run a Job again.
func digestOf(object map[string]any) string {
	text, err := json.Marshal(withoutEmpty(object))
	if err != nil {
		return "" // of no object that was made of JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		rest := make(map[string]any, len(value))
		for key, inner := range value {
			if inner = withoutEmpty(inner); inner != nil {
				rest[key] = inner
			}
		}
		if len(rest) > 0 {
			return rest
		}
		return nil
	case []any:
		rest := make([]any, len(value))
		for i, inner := range value {
			rest[i] = withoutEmpty(inner)
		}
		if len(rest) > 0 {
			return rest
		}
		return nil
	default:
		return value
	}
}

// outcomeOf returns how an object on the server has ended: by its conditions Complete, Succeeded and Failed, by its
// phase, and for a Job with a number of completions, by the number of Pods that have succeeded.
func outcomeOf(object map[string]any) outcome {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		switch kind, status := condition["type"], condition["status"]; {
		case (kind == "Complete" || kind == "Succeeded") && status == "True":
			return succeeded
		case kind == "Failed" && status == "True", kind == "Succeeded" && status == "False":
			return failed
		}
	}
	switch phase, _, _ := unstructured.NestedString(object, "status", "phase"); phase {
	case "Succeeded":
		return succeeded
	case "Failed":
		return failed
	}
	version, _ := object["apiVersion"].(string)
	if !strings.HasPrefix(version, "batch/") || object["kind"] != "Job" {
		return ""
	}
	completions, limited, _ := unstructured.NestedInt64(object, "spec", "completions")
	_, parallel, _ := unstructured.NestedInt64(object, "spec", "parallelism")
	finished, _, _ := unstructured.NestedInt64(object, "status", "succeeded")
	if (limited || !parallel) && finished >= max(1, completions) {
		return succeeded
	}
	return ""
}
