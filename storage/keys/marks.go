package keys

import (
	"slices"
	"strings"
)

// ManagedMarker is the name of the annotation by which other operators recognise a prefix as an operator's memory, and
// overlook all annotations under it.
const ManagedMarker = "kopf-managed"

// ManagedValue is what operators write into the marker. Only the presence of the marker is ever looked at.
const ManagedValue = "yes"

// copied is appended to the keys on replica sets of deployments. Kubernetes copies annotations from a deployment to its
// replica sets, and they would take the deployment's memory for their own.
const copied = "-ofDRS"

// NeedsMarker tells whether [ManagedMarker] must be written next to annotations of the prefix: for all prefixes but
// [KopfPrefix], which everyone knows (deviation D-marker; Kopf leaves out all prefixes that start with "kopf.").
func NeedsMarker(prefix string) bool {
	return prefix != KopfPrefix
}

// MarkerKey returns the full annotation key of the prefix's marker.
func MarkerKey(prefix string) string {
	return prefix + "/" + ManagedMarker
}

// Mark returns the key as it is to be used on the object: with "-ofDRS" appended on a ReplicaSet that a Deployment
// owns, unchanged otherwise. A malformed body counts as not owned.
func Mark(body map[string]any, key string) string {
	if kind, _ := body["kind"].(string); kind != "ReplicaSet" {
		return key
	}
	metadata, _ := body["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, reference := range references {
		owner, _ := reference.(map[string]any)
		if kind, _ := owner["kind"].(string); kind == "Deployment" {
			return key + copied
		}
	}
	return key
}

// Prefixes is a set of annotation prefixes, sorted; nil is the empty one.
type Prefixes []string

// MarkedPrefixes returns the prefixes under which Kopf's operators and ours, this one included, keep their memory: the
// marked ones, [KopfPrefix] and its subdomains. Annotations covered by them are not part of what users say. Nothing is
// allocated if there are none:
//
//	if marked := keys.MarkedPrefixes(annotations); marked != nil {
//		// copy the annotations without those that are covered
//	}
func MarkedPrefixes(annotations map[string]any) Prefixes {
	var marked Prefixes
	for key := range annotations {
		prefix, name, ok := strings.Cut(key, "/")
		if ok && (name == ManagedMarker || isKopf(prefix)) {
			marked = append(marked, prefix)
		}
	}
	slices.Sort(marked)
	return slices.Compact(marked)
}

// Cover tells whether a full annotation key is under one of the prefixes: "<prefix>/…". Keys without a slash and
// subdomains of a prefix are not.
func (p Prefixes) Cover(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	// Anybody can mark thousands of prefixes on one object.
	_, found := slices.BinarySearch(p, prefix)
	return found
}

func isKopf(prefix string) bool {
	return prefix == KopfPrefix || strings.HasSuffix(prefix, "."+KopfPrefix)
}
