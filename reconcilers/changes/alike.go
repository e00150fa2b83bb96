package changes

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// isAlike reports whether two states of the object are equal, except for the annotations that our writes have stored
// for the engine, and for parts that no handler depends on.
func (h *ChangeHandling) isAlike(before, now, stored map[string]any) bool {
	same := func(key string, then, now any) bool {
		switch key {
		case "metadata":
			return h.isAlikeMetadata(then, now, stored)
		case "status":
			// Handlers that only see the essence do not see the status.
			return h.Sight == handlers.SeesEssence || diff.Equal(then, now)
		default:
			return diff.Equal(then, now)
		}
	}
	return eachEqual(before, now, same)
}

// isAlikeMetadata compares the metadata. The server changes some of its fields with every write.
func (h *ChangeHandling) isAlikeMetadata(before, now any, stored map[string]any) bool {
	then, _ := before.(map[string]any)
	metadata, _ := now.(map[string]any)
	return eachEqual(then, metadata, func(key string, then, now any) bool {
		switch key {
		case "resourceVersion", "managedFields":
			// Each write changes these.
			return true
		case "generation":
			return h.Sight == handlers.SeesEssence || diff.Equal(then, now)
		case "annotations":
			wanted, _ := then.(map[string]any)
			present, _ := now.(map[string]any)
			if len(stored) > 0 { // as our writes should have left them
				wanted = maps.Clone(wanted)
				if wanted == nil {
					wanted = map[string]any{}
				}
				maps.Copy(wanted, stored)
			}
			return eachEqual(wanted, present, func(_ string, then, now any) bool { return diff.Equal(then, now) })
		default:
			return diff.Equal(then, now)
		}
	})
}

// eachEqual calls same for each key of both mappings. An absent value is nil.
func eachEqual(before, now map[string]any, same func(key string, then, now any) bool) bool {
	for key, then := range before {
		if !same(key, then, now[key]) {
			return false
		}
	}
	for key, value := range now {
		if _, asked := before[key]; !asked && !same(key, nil, value) {
			return false
		}
	}
	return true
}
