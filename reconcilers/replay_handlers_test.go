package reconcilers_test

import (
	"context"
	"maps"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

// behaviours are the keys that describe one call of a function.
var behaviours = []string{
	"raise", "message", "delay", "code", "return", "patch", "fns", "subs", "execute", "takes", "note_spec",
	"note_patch",
	"until", "lingers", "lingers_cancelled",
}

// handlers returns the handlers of the case for its resource, like a registry. It checks all their fields, so that
// unknown ones fail the test before the run.
func (r *cycleRun) handlers() []*handlers.Handler {
	all, err := declared.Handlers(r.t, r.input.List("handlers"), r.discoveryResource)
	if err != nil {
		r.t.Fatalf("declaring the handlers: %v", err)
	}
	var own []*handlers.Handler
	for _, d := range all {
		if !d.SelectsServed {
			continue
		}
		r.known(d.Handler, d.Options)
		if d.Handler.Family == handlers.Background {
			d.Handler.Call = r.spawned(d.Handler, d.Options)
		} else {
			d.Handler.Call = r.function(d.Handler.ID, d.Options)
		}
		own = append(own, d.Handler)
	}
	return own
}

// known fails the test on unknown fields and values of a function, including its sub-handlers.
func (r *cycleRun) known(h *handlers.Handler, d vectors.Fields) {
	for _, behave := range calls(d) {
		known := vectors.Known(r.t, behave, behaviours...)
		_ = declared.Raise(r.t, known)
		for _, key := range []string{"takes", "lingers", "lingers_cancelled"} {
			_ = declared.Seconds(r.t, known, key)
		}
		if until := known.Text("until", "stopped"); until != "stopped" && until != "cancelled" {
			r.t.Fatalf("the harness does not support waiting until %q", until)
		}
		for _, item := range known.List("fns") {
			if _, err := transform(vectors.Known(r.t, item, "fn", "path", "value", "finalizer")); err != nil {
				r.t.Fatal(err)
			}
		}
		for _, item := range known.List("subs") {
			sub, options, err := declared.Sub(r.t, h, item)
			if err != nil {
				r.t.Fatalf("declaring a sub-handler: %v", err)
			}
			r.known(sub, options)
		}
	}
}

// calls returns the behaviours of a function, one per call; the last one repeats.
func calls(d vectors.Fields) []any {
	if list := d.List("behave"); len(list) > 0 {
		return list
	}
	if one := d.Mapping("behave"); one != nil {
		return []any{map[string]any(one)}
	}
	return []any{map[string]any{}}
}

// behaviour returns the behaviour of the function at its next call.
func (r *cycleRun) behaviour(id string, d vectors.Fields) vectors.Fields {
	all := calls(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	behave, _ := all[min(r.callCounts[id], len(all)-1)].(map[string]any)
	r.callCounts[id]++
	return behave
}

func (r *cycleRun) function(id string, d vectors.Fields) handlers.Func {
	return func(ctx context.Context, call *handlers.Invocation) error {
		behave := r.behaviour(id, d)
		r.note(r.entry(call, behave))
		if err := r.pause(ctx, behave, "takes"); err != nil {
			return err
		}
		if err := write(call, behave); err != nil {
			return err
		}
		for _, item := range behave.List("subs") {
			if err := r.declare(call, item); err != nil {
				return err
			}
		}
		if behave.Flag("execute") {
			if err := call.Subs.Run(ctx, nil); err != nil {
				return err
			}
		}
		return declared.Raise(r.t, behave)
	}
}

// pause waits as long as the behaviour requires. It returns the error of the context.
func (r *cycleRun) pause(ctx context.Context, behave vectors.Fields, key string) error {
	length := declared.Seconds(r.t, behave, key)
	if length == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(*length):
		return nil
	}
}

// declare declares a sub-handler in a function.
func (r *cycleRun) declare(call *handlers.Invocation, item any) error {
	sub, d, err := declared.Sub(r.t, call.Handler, item)
	if err != nil {
		return err
	}
	sub.Call = r.function(handlers.SubID(call.Handler.ID, sub.ID), d)
	return call.Subs.Declare(sub)
}

// entry returns the log entry of the call.
func (r *cycleRun) entry(call *handlers.Invocation, behave vectors.Fields) map[string]any {
	entry := map[string]any{"what": "call", "id": call.Handler.ID, "retry": int64(call.Retry), "runtime": 0.0}
	switch call.Handler.Family {
	case handlers.Background:
		entry["runtime"] = time.Since(call.Started).Seconds()
		if behave.Flag("note_patch") {
			entry["patch_pending"] = false
		}
	case handlers.Changing:
		entry["reason"], entry["runtime"] = string(call.Cause.Reason), time.Since(call.Started).Seconds()
		if r.input.Flag("with_diffs") {
			before, after, changes := call.Handler.ViewCause(call.Cause)
			entry["old"], entry["new"], entry["diff"] = before, after, items(changes)
		}
	default:
		entry["type"] = call.Cause.EventType
	}
	if behave.Flag("note_spec") {
		object, _ := call.WorkingCopy()
		if call.LiveObject != nil {
			object = liveBody(call)
		}
		entry["spec"] = object["spec"]
	}
	return entry
}

func items(changes diff.Diff) []any {
	list := make([]any, 0, len(changes))
	for _, item := range changes {
		path := make([]any, 0, len(item.Path))
		for _, key := range item.Path {
			path = append(path, key)
		}
		list = append(list, []any{string(item.Op), path, item.Old, item.New})
	}
	return list
}

// ownFinalizer is the finalizer of the operator.
const ownFinalizer = keys.KopfPrefix + "/KopfFinalizerMarker"

// write changes the object as the behaviour requires.
func write(call *handlers.Invocation, behave vectors.Fields) error {
	if merge := behave.Mapping("patch"); merge != nil {
		if err := call.Writer.AddTransform(merging(merge)); err != nil {
			return err
		}
	}
	for _, item := range behave.List("fns") {
		fn, _ := item.(map[string]any)
		change, err := transform(fn)
		if err != nil {
			return err
		}
		if err := call.Writer.AddTransform(change); err != nil {
			return err
		}
	}
	if behave["return"] != nil {
		return call.Writer.SetResult(behave["return"])
	}
	return nil
}

// merging returns a transformation that applies a merge patch.
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
