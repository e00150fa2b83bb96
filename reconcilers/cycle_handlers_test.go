package reconcilers_test

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

var kopfexamples = reconcilers.Selector{GroupVersion: schema.GroupVersion{Group: "kopf.dev", Version: "v1"}, Kind: "KopfExample"}

// handlers are those of the case, as a registry would have them.
func (r *cycleRun) handlers() []*handlers.Handler {
	var all []*handlers.Handler
	for _, item := range r.input.List("handlers") {
		all = append(all, r.handler(vectors.Known(r.t, item, "on", "id", "fn", "behave", "labels", "backoff", "errors", "retries", "timeout",
			"field", "optional", "deleted", "interval", "sharp", "idle", "initial_delay", "cancellation_backoff", "cancellation_timeout",
			"cancellation_polling")))
	}
	return all
}

func (r *cycleRun) handler(d vectors.Fields) *handlers.Handler {
	h := &handlers.Handler{
		ID: d.Text("id", ""), Function: d.Text("fn", d.Text("id", "")), Optional: d.Flag("optional"), EvenIfDeleted: d.Flag("deleted"),
		Policy: r.policy(d),
	}
	if field := d.Text("field", ""); field != "" {
		h.Field, h.ID = diff.ParsePath(field), h.ID+"/"+field
	}
	if wanted := d.Mapping("labels"); wanted != nil {
		set := labels.Set{}
		for key := range wanted {
			set[key] = wanted.Text(key, "")
		}
		h.Filters = append(h.Filters, handlers.Labels(labels.SelectorFromSet(set)))
	}
	switch on := d.Text("on", ""); on {
	case "create", "update", "delete":
		h.Reason = cause.Reason(on)
		h.NeedsChange = on == "update" && h.Field != nil
	case "resume":
		h.Initial = true
	case "field":
		h.NeedsChange = true
	case "event":
		h.Family = handlers.Watching
	case "timer", "daemon":
		return r.spawning(h, on == "daemon", d)
	default:
		r.t.Fatalf("the harness does not know handlers on %q", on)
	}
	h.Call = r.function(h.ID, d)
	return h
}

func (r *cycleRun) policy(d vectors.Fields) handlers.Policy {
	var p handlers.Policy
	for name, limit := range map[string]**time.Duration{"timeout": &p.Timeout, "backoff": &p.Backoff} {
		if d[name] != nil {
			*limit = ptr.To(time.Duration(number(d[name]) * float64(time.Second)))
		}
	}
	if d["retries"] != nil {
		p.Retries = ptr.To(int(number(d["retries"])))
	}
	p.Errors = map[string]handlers.ErrorsMode{
		"IGNORED": handlers.ErrorsIgnored, "TEMPORARY": handlers.ErrorsTemporary, "PERMANENT": handlers.ErrorsPermanent,
	}[d.Text("errors", "")]
	return p
}

// behaviour is what a function does at its next call: the last one is for all the further ones.
func (r *cycleRun) behaviour(id string, d vectors.Fields) vectors.Fields {
	behave := d.List("behave")
	if behave == nil {
		behave = []any{map[string]any{}}
		if one := d.Mapping("behave"); one != nil {
			behave = []any{map[string]any(one)}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(r.behaviours[id], len(behave)-1)
	r.behaviours[id]++
	return vectors.Known(r.t, behave[n], "raise", "message", "delay", "return", "patch", "fns", "subs", "execute", "takes", "note_spec",
		"until", "lingers", "lingers_cancelled", "note_patch")
}

func (r *cycleRun) function(id string, d vectors.Fields) handlers.Func {
	return func(ctx context.Context, call *handlers.Call) error {
		behave := r.behaviour(id, d)
		r.note(r.entry(call, behave))
		if behave["takes"] != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(number(behave["takes"]) * float64(time.Second))):
			}
		}
		if err := r.write(call, behave); err != nil {
			return err
		}
		if err := r.declare(call, behave.List("subs")); err != nil {
			return err
		}
		if behave.Flag("execute") {
			if err := call.Subs.Run(ctx); err != nil {
				return err
			}
		}
		return raise(r.t, behave)
	}
}

// declare registers sub-handlers inside of a function.
func (r *cycleRun) declare(call *handlers.Call, subs []any) error {
	for _, item := range subs {
		d := vectors.Known(r.t, item, "id", "fn", "behave", "labels", "backoff", "errors", "retries", "timeout", "field")
		sub := &handlers.Handler{ID: d.Text("id", ""), Function: d.Text("fn", d.Text("id", "")), Policy: r.policy(d)}
		if field := d.Text("field", ""); field != "" {
			sub.Field = diff.ParsePath(field)
		}
		sub.Call = r.function(handlers.SubID(call.Handler.ID, sub.ID), d)
		if err := call.Subs.Declare(sub); err != nil {
			return err
		}
	}
	return nil
}

// entry is the call as it is logged.
func (r *cycleRun) entry(call *handlers.Call, behave vectors.Fields) map[string]any {
	entry := map[string]any{"what": "call", "id": call.Handler.ID, "retry": int64(call.Retry), "runtime": 0.0}
	if call.Handler.Family == handlers.Spawning {
		entry["runtime"] = time.Since(call.Started).Seconds()
		return entry
	}
	if call.Handler.Family != handlers.Changing {
		entry["type"] = call.Cause.Type
		return entry
	}
	entry["reason"], entry["runtime"] = string(call.Cause.Reason), time.Since(call.Started).Seconds()
	if r.input.Flag("with_diffs") {
		before, after, changes := call.Handler.View(call.Cause)
		entry["old"], entry["new"], entry["diff"] = before, after, items(changes)
	}
	if behave.Flag("note_spec") {
		entry["spec"] = call.Object["spec"]
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
