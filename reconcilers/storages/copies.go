package storages

import (
	"fmt"
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// isolateEach isolates each of several storages. The result has the same type as the argument.
func isolateEach[M ~[]S, S any](several M, apart func(S) S) M {
	all := make(M, len(several))
	for i, one := range several {
		all[i] = apart(one)
	}
	return all
}

// containPanic turns a panic of a method into an error that names the storage. Errors that the method returns stay
// unchanged.
func containPanic(storage any, method string, call func() error) error {
	err := panics.Contain(call)
	if panics.StackFields(err) != nil {
		return fmt.Errorf("%s of the storage %T: %w", method, storage, err)
	}
	return err
}

// applyToCopies calls a method with copies of the patch and of the body. Only if the method succeeds, its changes are applied
// to the patch, so a failed method never leaves a partial write.
func applyToCopies(patch, body map[string]any, add func(patch, body map[string]any) error) error {
	own := copyTree(patch)
	if err := add(own, copyTree(body)); err != nil {
		return err
	}
	// The method may have kept references to values of its copy, and could modify them later.
	own = copyTree(own)
	// Callers hold this map, so it is changed in place.
	clear(patch)
	maps.Copy(patch, own)
	return nil
}

// copyTree returns a deep copy, and nil for nil.
func copyTree(tree map[string]any) map[string]any {
	own, _ := diff.DeepCopy(tree).(map[string]any)
	return own
}
