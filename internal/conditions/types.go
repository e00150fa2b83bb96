package conditions

import (
	"fmt"
	"maps"
	"slices"
)

// Types are the types of the conditions that an operator writes.
type Types struct {
	// Ready, Reconciling, Stalled and Paused are the type names.
	Ready, Reconciling, Stalled, Paused string
	// WritesObservedGeneration is true if status.observedGeneration is written as well. Only the operator that owns the
	// kind may write it, because the field describes the whole status.
	WritesObservedGeneration bool
}

// NewTypes returns the usual types. With a domain, it returns types for an additional operator on a kind whose main
// operator has the usual types. An additional operator does not write status.observedGeneration.
func NewTypes(domain string) (Types, error) {
	t := Types{
		Ready: "Ready", Reconciling: "Reconciling", Stalled: "Stalled", Paused: "HandlingPaused",
		WritesObservedGeneration: domain == "",
	}
	if domain == "" {
		return t, nil
	}
	for _, name := range []*string{&t.Ready, &t.Reconciling, &t.Stalled, &t.Paused} {
		// A domain makes the types of two operators on one kind different.
		*name = domain + "/" + *name
		if err := checkType(*name); err != nil {
			return t, fmt.Errorf(`%q: it must be a domain, such as "databases.example.org"`, domain)
		}
	}
	return t, nil
}

// TypeNames returns the four types.
func (t Types) TypeNames() []string { return []string{t.Ready, t.Reconciling, t.Stalled, t.Paused} }

// ReportedState is the state that the conditions of an object report.
type ReportedState struct {
	// HasReady is true if the Ready condition exists, even if its status is False. Reconciling is true if the status of
	// the Reconciling condition is True, and Paused if that of the Paused condition is.
	HasReady, IsReconciling, IsPaused bool
	// Generation is the generation that the conditions describe; zero if unknown.
	Generation int64
}

// ReadReported reads the conditions of an object. A status that cannot have conditions does not report anything.
func (t Types) ReadReported(body map[string]any) ReportedState {
	status, list, _ := readStatus(body)
	ready, reconciling := findCondition(list, t.Ready), findCondition(list, t.Reconciling)
	told := ReportedState{HasReady: ready != nil, IsReconciling: reconciling["status"] == True}
	told.IsPaused = findCondition(list, t.Paused)["status"] == True
	told.Generation, _ = ready["observedGeneration"].(int64)
	// If the condition does not have a generation, use that of the whole status.
	if told.Generation == 0 && t.WritesObservedGeneration {
		told.Generation, _ = status["observedGeneration"].(int64)
	}
	return told
}

// WithoutConditions returns the object without everything that [Types.Apply] writes, so that our own status writes do
// not count as changes. It shares the rest with the given object.
func (t Types) WithoutConditions(body map[string]any) map[string]any {
	status, list, err := readStatus(body)
	if err != nil || status == nil {
		return body
	}
	left := list
	for _, own := range t.TypeNames() {
		left = dropCondition(left, own)
	}
	_, observed := status["observedGeneration"]
	if len(left) == len(list) && !(observed && t.WritesObservedGeneration) {
		return body
	}
	status, body = maps.Clone(status), maps.Clone(body)
	if body["status"] = status; t.WritesObservedGeneration {
		delete(status, "observedGeneration")
	}
	if status["conditions"] = slices.Clip(left); len(left) == 0 {
		delete(status, "conditions")
	}
	// A status is treated as absent if Apply has written everything in it.
	if len(status) == 0 {
		delete(body, "status")
	}
	return body
}

// GenerationOf returns metadata.generation; zero if the kind does not have one.
func GenerationOf(body map[string]any) int64 {
	metadata, _ := body["metadata"].(map[string]any)
	generation, _ := metadata["generation"].(int64)
	return generation
}
