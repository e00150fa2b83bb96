package planning

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

// findLeftovers returns the records and the sets of children on an object whose handlers the operator does not have.
func (m *maker) findLeftovers(of reconcilers.PreviewedKind, body map[string]any) (left []string) {
	annotations, _, _ := unstructured.NestedMap(body, "metadata", "annotations")
	known := m.knownKeys(of, body)
	isKnown := func(name string) bool {
		return slices.ContainsFunc(known, func(key string) bool {
			return name == key || strings.HasPrefix(name, key+".") // the record of a sub-handler
		})
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, own := strings.CutPrefix(key, m.options.Prefix+"/")
		switch {
		case !own || isKnown(name):
		case strings.HasPrefix(name, keys.ChildrenOf), strings.HasPrefix(name, keys.ChildrenOfRun):
			left = append(left, "the children in annotation "+key)
		case clusterops.IsRecord(annotations[key]):
			left = append(left, "the progress in annotation "+key)
		}
	}
	return left
}

// knownKeys returns the names of the annotations that belong to handlers of the operator, without the prefix.
func (m *maker) knownKeys(of reconcilers.PreviewedKind, body map[string]any) (names []string) {
	add := func(key string) {
		for _, full := range keys.AnnotationKeysOn(body, m.options.Prefix, m.options.BoundTo, key, true) {
			names = append(names, strings.TrimPrefix(full, m.options.Prefix+"/"))
		}
	}
	for _, h := range of.Background {
		add(keys.ChildrenOfRun + h.ID)
	}
	for _, h := range of.Changing {
		for _, id := range append([]string{h.ID}, h.FormerIDs...) {
			add(id)
			add(keys.ChildrenOf + id)
			// The keys of sub-handlers can be shortened, so the record of the handler names them.
			if record, err := m.options.Progress.Fetch(body, id); err == nil && record != nil {
				for _, sub := range record.Subrefs {
					add(sub)
				}
			}
		}
	}
	return names
}

// whyHandled returns the reason of the cause in words. It counts the objects that would be created again although there
// is a last-handled configuration under another prefix.
func (m *maker) whyHandled(body map[string]any, c *cause.Cause, found journal.Evaluation) string {
	switch c.Reason {
	case cause.Create:
		others := m.otherPrefixes(body)
		for _, prefix := range others {
			m.prefixes[prefix]++
		}
		if len(others) > 0 {
			return "no last-handled configuration, but that of " + strings.Join(others, ", ")
		}
		return "no last-handled configuration"
	case cause.Update:
		text := "changed: " + strings.Join(found.ChangedPaths, ", ")
		if found.OmittedPathCount > 0 {
			text += fmt.Sprintf(" and %d more", found.OmittedPathCount)
		}
		return text
	case cause.Delete:
		return "being deleted"
	case cause.Resume:
		return "exists when the operator starts"
	default:
		return string(c.Reason)
	}
}

// otherPrefixes returns the other prefixes under which the object has a last-handled configuration, sorted.
func (m *maker) otherPrefixes(body map[string]any) (others []string) {
	annotations, _, _ := unstructured.NestedMap(body, "metadata", "annotations")
	for key := range annotations {
		prefix, name, _ := strings.Cut(key, "/")
		if name == keys.LastHandled && prefix != m.options.Prefix {
			others = append(others, prefix)
		}
	}
	slices.Sort(others)
	return others
}

// addWarnings adds the warnings about the whole cluster.
func (m *maker) addWarnings(unserved []string) {
	for _, prefix := range slices.Sorted(maps.Keys(m.prefixes)) {
		m.report.Warnings = append(m.report.Warnings, fmt.Sprintf(
			"%d objects would be handled as created, and have the last-handled configuration of %s. If that is a "+
				"former name or prefix of this operator, set Persistence.AnnotationPrefix to it, or its functions "+
				"will be called again for existing objects", m.prefixes[prefix], prefix,
		))
	}
	for _, reason := range unserved {
		m.report.Warnings = append(m.report.Warnings, "No resource for handlers of "+reason)
	}
	left := 0
	for _, o := range m.report.Objects {
		if len(o.Leftovers) > 0 {
			left++
		}
	}
	if left > 0 {
		m.report.Warnings = append(m.report.Warnings, fmt.Sprintf(
			"%d objects have progress or children of handlers that this version does not have. If a handler was "+
				"renamed, give its former id with kopf.FormerIDs", left,
		))
	}
}
