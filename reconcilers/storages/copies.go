package storages

import (
	"fmt"
	"maps"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// each returns several storages, each kept apart.
func each[M ~[]S, S any](several M, apart func(S) S) M {
	all := make(M, len(several))
	for i, one := range several {
		all[i] = apart(one)
	}
	return all
}

// contain makes a panic of a method an error that names the storage.
func contain(storage any, method string, call func() error) error {
	err := panics.Contain(call)
	if panics.Stack(err) != nil {
		return fmt.Errorf("%s of the storage %T: %w", method, storage, err)
	}
	return err
}

// patched calls a method with copies of the patch and of the body. If the method succeeds, the patch gets its changes.
func patched(patch, body map[string]any, add func(patch, body map[string]any) error) error {
	own := copied(patch)
	if err := add(own, copied(body)); err != nil {
		return err
	}
	own = copied(own)
	clear(patch)
	maps.Copy(patch, own)
	return nil
}

func copied(tree map[string]any) map[string]any {
	own, _ := diff.Copy(tree).(map[string]any)
	return own
}
