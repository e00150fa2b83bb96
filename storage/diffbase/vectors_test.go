package diffbase_test

import (
	"math"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/diffbasetest"
)

func TestVectorsEssence(t *testing.T) {
	vectors.Play(t, "essence", nil, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "body", "extra_fields", "diffbase", "progress")
		storage, err := diffbasetest.Storage(t, v["diffbase"])
		if err != nil {
			return nil, err
		}
		cleared, err := diffbasetest.Clearing(t, v["progress"])
		if err != nil {
			return nil, err
		}
		essence, err := storage.Build(v.Object("body"), diffbasetest.Paths(v.List("extra_fields")))
		if err != nil {
			return nil, err
		}
		return map[string]any{"essence": essence, "cleared": cleared(essence)}, nil
	})
}

func TestVectorsDiffbaseStore(t *testing.T) {
	vectors.Play(t, "diffbase_store", nil, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "body", "extra_fields", "diffbase", "progress", "patch", "essence")
		storage, err := diffbasetest.Storage(t, v["diffbase"])
		if err != nil {
			return nil, err
		}
		cleared, err := diffbasetest.Clearing(t, v["progress"])
		if err != nil {
			return nil, err
		}
		body, patch := v.Object("body"), v.Object("patch")
		essence, given := v["essence"].(map[string]any)
		if !given {
			if essence, err = storage.Build(body, diffbasetest.Paths(v.List("extra_fields"))); err != nil {
				return nil, err
			}
			essence = cleared(essence) // the essence is compared in the stored form
		}
		if err := storage.Store(patch, body, essence); err != nil {
			return nil, err
		}
		return map[string]any{"essence": vectorEssence(essence), "patch": patch}, nil
	})
}

func TestVectorsDiffbaseFetch(t *testing.T) {
	vectors.Play(t, "diffbase_fetch", nil, func(t *testing.T, v vectors.Fields) (any, error) {
		vectors.Known(t, v, "body", "diffbase")
		storage, err := diffbasetest.Storage(t, v["diffbase"])
		if err != nil {
			return nil, err
		}
		essence, err := storage.Fetch(v.Object("body"))
		if err != nil || essence == nil {
			return map[string]any{"essence": nil}, err
		}
		return map[string]any{"essence": essence}, nil
	})
}

// vectorEssence returns an essence in the form of the vectors, which hold floats with six decimals. The patch is not
// changed, so the test loses nothing.
func vectorEssence(value any) any {
	return vectors.Leaves(value, func(leaf any) any {
		if number, ok := leaf.(float64); ok && math.Abs(number) < 1<<32 {
			return math.Round(number*1e6) / 1e6
		}
		return leaf
	})
}
