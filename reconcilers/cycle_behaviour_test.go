package reconcilers_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type later struct {
	error
	delay time.Duration
}

func (e later) RetryAfter() time.Duration { return e.delay }

type never struct{ error }

func (never) Permanent() bool { return true }

// raise is the error of a behaviour; nil if there is none.
func raise(t *testing.T, behave vectors.Fields) error {
	err := errors.New(behave.Text("message", ""))
	switch class := behave.Text("raise", ""); class {
	case "":
		return nil
	case "temporary":
		delay, given := behave["delay"]
		switch {
		case !given:
			return later{err, time.Minute}
		case delay == nil:
			return later{err, -1}
		default:
			return later{err, time.Duration(number(delay) * float64(time.Second))}
		}
	case "permanent":
		return never{err}
	case "arbitrary":
		return err
	default:
		t.Fatalf("the harness does not know how to raise %q", class)
		return nil
	}
}

// write does to the object what the behaviour says.
func (r *cycleRun) write(call *handlers.Call, behave vectors.Fields) error {
	if merge := behave.Mapping("patch"); merge != nil {
		patch := patching.Patch{Merge: merge}
		err := call.Writes.Remember(func(body map[string]any) error {
			changed, err := patch.ApplyTo(body)
			if err == nil {
				changed = maps.Clone(changed)
				clear(body)
				maps.Copy(body, changed)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, item := range behave.List("fns") {
		fn := vectors.Known(r.t, item, "fn", "path", "value", "finalizer")
		if err := call.Writes.Remember(r.transform(fn)); err != nil {
			return err
		}
	}
	if behave["return"] != nil {
		return call.Writes.SetResult(behave["return"])
	}
	return nil
}

func (r *cycleRun) transform(fn vectors.Fields) patching.Transform {
	path := diff.ParsePath(fn.Text("path", ""))
	switch name := fn.Text("fn", ""); name {
	case "append":
		return func(body map[string]any) error {
			held, _ := diff.Resolve(body, path)
			list, _ := held.([]any)
			for _, item := range list {
				if diff.Equal(item, fn["value"]) {
					return nil
				}
			}
			return setIn(body, path, append(append([]any{}, list...), fn["value"]))
		}
	case "set":
		return func(body map[string]any) error { return setIn(body, path, fn["value"]) }
	case "block_deletion":
		return patching.BlockDeletion(fn.Text("finalizer", ""))
	case "allow_deletion":
		return patching.AllowDeletion(fn.Text("finalizer", ""))
	default:
		r.t.Fatalf("the harness does not know the function %q", name)
		return nil
	}
}

func setIn(body map[string]any, path diff.Path, value any) error {
	for _, key := range path[:len(path)-1] {
		next, ok := body[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			body[key] = next
		}
		body = next
	}
	body[path[len(path)-1]] = value
	return nil
}
