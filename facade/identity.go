package facade

import "maps"

// immutable are the fields that belong to the API server: what functions do to them is undone.
var immutable = []string{
	"name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
	"deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// keepIdentity gives the changed object with the identity that it had before.
func keepIdentity(before, after map[string]any) map[string]any {
	kept := maps.Clone(after)
	if kept == nil {
		kept = map[string]any{}
	}
	former, _ := before["metadata"].(map[string]any)
	given, _ := after["metadata"].(map[string]any)
	metadata := make(map[string]any, len(given))
	maps.Copy(metadata, given)
	restore(metadata, former, immutable...)
	restore(kept, before, "apiVersion", "kind")
	kept["metadata"] = metadata
	return kept
}

func restore(to, from map[string]any, keys ...string) {
	for _, key := range keys {
		if value, ok := from[key]; ok {
			to[key] = value
		} else {
			delete(to, key)
		}
	}
}
