package reconcilers_test

import (
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// ownFinalizer is that of the operator.
const ownFinalizer = keys.KopfPrefix + "/KopfFinalizerMarker"

// write does to the object what the behaviour says.
func write(call *handlers.Call, behave vectors.Fields) error {
	if merge := behave.Mapping("patch"); merge != nil {
		if err := call.Writes.Remember(merging(merge)); err != nil {
			return err
		}
	}
	for _, item := range behave.List("fns") {
		fn, _ := item.(map[string]any)
		change, err := transform(fn)
		if err != nil {
			return err
		}
		if err := call.Writes.Remember(change); err != nil {
			return err
		}
	}
	if behave["return"] != nil {
		return call.Writes.SetResult(behave["return"])
	}
	return nil
}

// merging does what a merge-patch does.
func merging(merge map[string]any) patching.Transform {
	patch := patching.Patch{Merge: merge}
	return func(body map[string]any) error {
		changed, err := patch.ApplyTo(body)
		if err == nil {
			changed = maps.Clone(changed)
			clear(body)
			maps.Copy(body, changed)
		}
		return err
	}
}

func transform(fn vectors.Fields) (patching.Transform, error) {
	finalizer := fn.Text("finalizer", ownFinalizer)
	switch fn.Text("fn", "") {
	case "block_deletion":
		return patching.BlockDeletion(finalizer), nil
	case "allow_deletion":
		return patching.AllowDeletion(finalizer), nil
	default:
		return vectors.Edit(fn)
	}
}
