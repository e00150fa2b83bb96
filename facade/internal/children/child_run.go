package children

import (
	"cmp"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// outcome is the final state of a child with UntilDone; empty while it runs. The values are stored in records.
type outcome string

// Succeeded and failed children were observed in that state. A vanished child disappeared before its end was observed.
const (
	outcomeSucceeded outcome = "succeeded"
	outcomeFailed    outcome = "failed"
	outcomeVanished  outcome = "vanished"
)

// childRun is the stored state of a child with UntilDone: the digest of the applied declaration, and the outcome. The
// zero value is a child that was not applied yet.
type childRun struct {
	digest  string
	outcome outcome
}

// String returns the stored form: "<digest> <outcome>", or only the digest while the child runs.
func (r childRun) String() string { return strings.TrimSpace(r.digest + " " + string(r.outcome)) }

// parseRun reads the form that String returns.
func parseRun(text string) childRun {
	digest, ended, _ := strings.Cut(text, " ")
	return childRun{digest, outcome(ended)}
}

// mergeLater merges a later state into the run. A later state without an outcome does not remove the outcome of the
// same declaration: the child was done and stays done, even if it was deleted.
func (r childRun) mergeLater(later childRun) childRun {
	if later.digest == "" {
		return r
	}
	// Another digest is a new run, which starts without an outcome.
	if later.digest == r.digest {
		later.outcome = cmp.Or(later.outcome, r.outcome)
	}
	return later
}

// digestOf returns the digest of a declared object. Empty fields are ignored: Go types of different package versions
// differ in the empty fields that they encode, and an upgrade must not run a Job again. Digests are stored, so a change
// of this function runs every such child again.
func digestOf(object map[string]any) string {
	sum := fingerprintOfJSON(codec.RemoveEmpty(diff.DeepCopy(object)))
	// Eight bytes are enough to detect a change, and they keep the record small.
	return hex.EncodeToString(sum[:8])
}

// outcomeOf returns the outcome of an object on the server. It evaluates the conditions Complete, Succeeded and Failed,
// then the phase. A Job with a number of completions is also done when that many Pods have succeeded.
func outcomeOf(object map[string]any) outcome {
	// Malformed conditions count as absent: any kind can be a child, and its status can have any form.
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		switch kind, status := condition["type"], condition["status"]; {
		case (kind == "Complete" || kind == "Succeeded") && status == "True":
			return outcomeSucceeded
		case kind == "Failed" && status == "True", kind == "Succeeded" && status == "False":
			return outcomeFailed
		}
	}
	// Pods and many custom resources have a phase.
	switch phase, _, _ := unstructured.NestedString(object, "status", "phase"); phase {
	case "Succeeded":
		return outcomeSucceeded
	case "Failed":
		return outcomeFailed
	}
	version, _ := object["apiVersion"].(string)
	if !strings.HasPrefix(version, "batch/") || object["kind"] != "Job" {
		return ""
	}
	// A Job with parallelism and without completions is a work queue: the number of its Pods does not show the end.
	completions, limited, _ := unstructured.NestedInt64(object, "spec", "completions")
	_, parallel, _ := unstructured.NestedInt64(object, "spec", "parallelism")
	finished, _, _ := unstructured.NestedInt64(object, "status", "succeeded")
	if (limited || !parallel) && finished >= max(1, completions) {
		return outcomeSucceeded
	}
	return ""
}
