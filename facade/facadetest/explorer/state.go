package explorer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
)

// state is the state of the cluster and the outside systems at one moment.
type state struct {
	objects         map[string]any  // by kind and name, without differences between runs such as uids
	markedUIDs      map[string]bool // the uids of objects with the annotation of another client
	uids            map[string]bool
	existingObjects map[string]bool // the labels of the existing objects
	outside         any
}

// currentState returns the current state of the cluster and the outside systems.
func (w *environment) currentState() state {
	s := state{objects: map[string]any{}, markedUIDs: map[string]bool{}, uids: map[string]bool{},
		existingObjects: map[string]bool{}}
	// Definitions and objects about the operator itself are not compared.
	all := slices.DeleteFunc(w.server.Objects(), func(object map[string]any) bool {
		kind, _ := object["kind"].(string)
		return kind == "CustomResourceDefinition" || isOperatorResource(strings.ToLower(kind)+"s")
	})
	for _, object := range all {
		o := unstructured.Unstructured{Object: object}
		s.uids[string(o.GetUID())] = true
		s.existingObjects[w.objectLabel(&o)] = true
		s.markedUIDs[string(o.GetUID())] = o.GetAnnotations()[otherClientAnnotation] != ""
	}
	for _, object := range normal.NewNames(all).NormalizeObjects(all) {
		o := unstructured.Unstructured{Object: object}
		unstructured.RemoveNestedField(object, "metadata", "annotations", otherClientAnnotation)
		if len(o.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(object, "metadata", "annotations")
		}
		for _, path := range w.settings.ignoredFields {
			unstructured.RemoveNestedField(object, path...)
		}
		// The objects are without uids here, so labels cannot depend on former objects with the same name.
		var fresh names
		s.objects[fresh.labelOf(&o)] = object
	}
	s.outside = w.outsideState()
	return s
}

// objectLabel returns the label of an object. The caller must not hold the lock.
func (w *environment) objectLabel(o *unstructured.Unstructured) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.names.labelOf(o)
}

// outsideState returns the state of the outside systems in the form of decoded JSON. No effect runs meanwhile.
func (w *environment) outsideState() any {
	w.effectSemaphore <- struct{}{}
	defer func() { <-w.effectSemaphore }()
	// Encoding makes values comparable, whatever their Go type.
	data, err := json.Marshal(w.scenario.Outside())
	if err != nil {
		w.tb.Fatalf("explorer: the state that Outside gives is nothing for encoding/json: %v", err)
	}
	var decoded any
	if err := json.Unmarshal(data, &decoded); err != nil {
		w.tb.Fatalf("explorer: reading the state that Outside gives: %v", err)
	}
	return decoded
}

// jsonDifferences returns the differences between two JSON values, one line for each field.
func jsonDifferences(path string, want, got any) (lines []string) {
	wanted, isMap := want.(map[string]any)
	given, both := got.(map[string]any)
	if isMap && both {
		for _, key := range unionKeys(wanted, given) {
			lines = append(lines, jsonDifferences(strings.TrimPrefix(path+"."+key, "."), wanted[key], given[key])...)
		}
		return lines
	}
	// Values other than maps are compared as a whole, including lists.
	before, after := jsonText(want), jsonText(got)
	if before == after {
		return nil
	}
	if path == "" {
		path = "all of it"
	}
	return []string{fmt.Sprintf("%s: %s here, %s in the uncut run", path, after, before)}
}

// jsonText returns a JSON value in one line. A missing value is described in words.
func jsonText(v any) string {
	if v == nil {
		return "nothing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
