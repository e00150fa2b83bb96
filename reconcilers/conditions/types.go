package conditions

import (
	"fmt"
	"maps"
	"slices"
)

// Types are the conditions that an operator tells of its handlers with.
type Types struct {
	// Ready, Reconciling and Stalled are their types.
	Ready, Reconciling, Stalled string
	// WholeStatus says that status.observedGeneration is written as well: it is for the operator that the kind belongs
	// to.
	WholeStatus bool
}

// Named gives the usual types; or, with a domain, those of an operator beside another one, which has the usual ones.
// Such an operator does not say for the whole status which generation it is about.
func Named(domain string) (Types, error) {
	t := Types{Ready: "Ready", Reconciling: "Reconciling", Stalled: "Stalled", WholeStatus: domain == ""}
	if domain == "" {
		return t, nil
	}
	for _, name := range []*string{&t.Ready, &t.Reconciling, &t.Stalled} {
		*name = domain + "/" + *name
		if err := checkType(*name); err != nil {
			return t, fmt.Errorf(`%q: it must be a domain, such as "databases.example.org"`, domain)
		}
	}
	return t, nil
}

// All are the three types.
func (t Types) All() []string { return []string{t.Ready, t.Reconciling, t.Stalled} }

// Told is what an object says of itself.
type Told struct {
	// Ready is true if there is the condition, whatever its status. Reconciling is true if that is said.
	Ready, Reconciling bool
	// Generation is what all this is about; zero if that is not said.
	Generation int64
}

// Told reads the conditions of an object. There are none in a status that cannot have any.
func (t Types) Told(body map[string]any) Told {
	status, list, _ := read(body)
	ready, reconciling := find(list, t.Ready), find(list, t.Reconciling)
	told := Told{Ready: ready != nil, Reconciling: reconciling["status"] == True}
	told.Generation, _ = ready["observedGeneration"].(int64)
	if told.Generation == 0 && t.WholeStatus {
		told.Generation, _ = status["observedGeneration"].(int64)
	}
	return told
}

// Hidden gives the object without what [Types.Apply] writes, for those who look for changes. It shares all else with
// the given one.
func (t Types) Hidden(body map[string]any) map[string]any {
	status, list, err := read(body)
	if err != nil || status == nil {
		return body
	}
	left := list
	for _, own := range t.All() {
		left = without(left, own)
	}
	_, observed := status["observedGeneration"]
	if len(left) == len(list) && !(observed && t.WholeStatus) {
		return body
	}
	status, body = maps.Clone(status), maps.Clone(body)
	if body["status"] = status; t.WholeStatus {
		delete(status, "observedGeneration")
	}
	if status["conditions"] = slices.Clip(left); len(left) == 0 {
		delete(status, "conditions")
	}
	if len(status) == 0 {
		delete(body, "status")
	}
	return body
}

// GenerationOf is metadata.generation; zero if the kind has none.
func GenerationOf(body map[string]any) int64 {
	metadata, _ := body["metadata"].(map[string]any)
	generation, _ := metadata["generation"].(int64)
	return generation
}
