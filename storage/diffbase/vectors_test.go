package diffbase_test

import (
	"math"
	"testing"
)

func TestVectorsEssence(t *testing.T) {
	runVectors(t, "essence", func(v vector) (any, error) {
		v.require("body", "extra_fields", "diffbase", "progress")
		storage, err := v.diffbase()
		if err != nil {
			return nil, err
		}
		clearing, err := v.progress()
		if err != nil {
			return nil, err
		}
		essence, err := storage.Build(v.object("body"), v.paths("extra_fields"))
		if err != nil {
			return nil, err
		}
		return map[string]any{"essence": essence, "cleared": clearing.Clear(essence)}, nil
	})
}

func TestVectorsDiffbaseStore(t *testing.T) {
	runVectors(t, "diffbase_store", func(v vector) (any, error) {
		v.require("body", "extra_fields", "diffbase", "progress", "patch", "essence")
		storage, err := v.diffbase()
		if err != nil {
			return nil, err
		}
		clearing, err := v.progress()
		if err != nil {
			return nil, err
		}
		body, patch := v.object("body"), v.object("patch")
		essence, given := v.input["essence"].(map[string]any)
		if !given {
			if essence, err = storage.Build(body, v.paths("extra_fields")); err != nil {
				return nil, err
			}
			essence = clearing.Clear(essence) // what is stored is what is compared
		}
		if err := storage.Store(patch, body, essence); err != nil {
			return nil, err
		}
		return map[string]any{"essence": recorded(essence), "patch": patch}, nil
	})
}

func TestVectorsDiffbaseFetch(t *testing.T) {
	runVectors(t, "diffbase_fetch", func(v vector) (any, error) {
		v.require("body", "diffbase")
		storage, err := v.diffbase()
		if err != nil {
			return nil, err
		}
		essence, err := storage.Fetch(v.object("body"))
		if err != nil || essence == nil {
			return map[string]any{"essence": nil}, err
		}
		return map[string]any{"essence": essence}, nil
	})
}

// recorded is an essence as the family of storing has it: floats were recorded with six decimals there. What was put
// into the patch was not touched, so that nothing is lost by this.
func recorded(value any) any {
	switch value := value.(type) {
	case float64:
		if math.Abs(value) < 1<<32 {
			return math.Round(value*1e6) / 1e6
		}
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = recorded(element)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			object[key] = recorded(element)
		}
		return object
	}
	return value
}
