package explorer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// state is the state of the cluster and the outside systems at one moment.
type state struct {
	objects         map[string]any  // by kind and name, without differences between runs such as uids
	existingObjects map[string]bool // the labels of the existing objects
	markedObjects   map[string]bool // the labels of those with the annotation of another client
	outside         any
}

// currentState returns the current state of the cluster and the outside systems.
func (w *environment) currentState() state {
	s := state{objects: map[string]any{}, existingObjects: map[string]bool{}, markedObjects: map[string]bool{}}
	// Definitions and objects about the operator itself are not compared.
	all := slices.DeleteFunc(w.server.Objects(), func(object map[string]any) bool {
		kind, _ := object["kind"].(string)
		return kind == "CustomResourceDefinition" || isOperatorResource(strings.ToLower(kind)+"s")
	})
	for _, object := range all {
		o := unstructured.Unstructured{Object: object}
		label := w.objectLabel(&o)
		s.existingObjects[label] = true
		s.markedObjects[label] = o.GetAnnotations()[otherClientAnnotation] != ""
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

// names distinguishes objects with the same name by the order in which they existed. Uids differ between runs, and
// cannot be used in reports.
type names map[string][]string // the uids by label

// labelOf returns the label of an object, such as "Database shop/orders", or "Database shop/orders, number 2".
func (n *names) labelOf(o *unstructured.Unstructured) string { return n.labelWithKind(o.GetKind(), o) }

// labelWithKind returns the label of an object whose kind is not set.
func (n *names) labelWithKind(kind string, o *unstructured.Unstructured) string {
	if *n == nil {
		*n = names{}
	}
	name := o.GetName()
	if namespace := o.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	name = kind + " " + name
	uid := string(o.GetUID())
	// The first uid gets the plain name.
	if !slices.Contains((*n)[name], uid) {
		(*n)[name] = append((*n)[name], uid)
	}
	if i := slices.Index((*n)[name], uid); i > 0 {
		return fmt.Sprintf("%s, number %d", name, i+1)
	}
	return name
}

// isRead reports whether the request does not change anything.
func isRead(r memapi.Request) bool { return slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// isOperatorResource reports whether a resource is about the operator itself rather than about its objects. Its
// requests are neither points nor compared.
func isOperatorResource(plural string) bool {
	return slices.Contains([]string{
		"events", "leases", "kopfpeerings", "clusterkopfpeerings", "selfsubjectaccessreviews",
	}, plural)
}

// subjectOf returns the subject of a request, such as databases/orders. The namespace "default" is omitted.
func subjectOf(r memapi.Request) string {
	// A request with a generated name is identified by its prefix.
	name := r.Name
	if name == "" && r.Verb == "create" {
		// The name of a new object is in the body only.
		var sent struct {
			Metadata struct{ Name, GenerateName string }
		}
		if json.Unmarshal(r.Body, &sent) == nil {
			if name = sent.Metadata.Name; name == "" {
				name = sent.Metadata.GenerateName
			}
		}
	}
	parts := []string{r.Resource.Plural}
	if r.Namespace != "" && r.Namespace != "default" {
		parts = append(parts, r.Namespace)
	}
	if name != "" {
		parts = append(parts, name)
	}
	return strings.Join(parts, "/")
}

// shownAs returns a write as it appears in a history.
func shownAs(r memapi.Request, subject string) string {
	verb := r.Verb
	if r.ContentType == string(types.ApplyYAMLPatchType) {
		verb = "apply"
	}
	if r.Subresource != "" {
		subject += "/" + r.Subresource
	}
	return verb + " " + subject
}

// courseLabel converts a text for use in the name of a course, which may not contain spaces, commas and quotes.
func courseLabel(text string) string {
	return strings.NewReplacer(" ", "-", ",", "-", "'", "-").Replace(text)
}

// unionKeys returns the keys of both maps in order.
func unionKeys(a, b map[string]any) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
