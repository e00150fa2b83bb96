package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/background"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/test/vectors/declared"
)

func TestVectorsTimer(t *testing.T) { playBackground(t, "timer") }

func TestVectorsDaemon(t *testing.T) { playBackground(t, "daemon") }

func playBackground(t *testing.T, family string) {
	vectors.Run(t, family, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		var log []any
		var final any
		vectors.Bubble(t, func(t *testing.T) { log, final = replay(t, input) })
		expected := vectors.Known(t, want.Value, "log", "final")
		compare(
			t, "calls and exits", ordered(logged(expected.List("log"), false), number(input["until"])),
			ordered(logged(log, false), number(input["until"])), input["latency"] == nil,
		)
		if want, got := compared(t, expected["final"]), compared(t, final); !equalWithin(want, got) {
			t.Errorf("the final object: -want, +got:\n%s", cmp.Diff(want, got))
		}
	})
}

// ordered sorts entries of the same time by handlers, and drops those after the end, where Kopf's runs are cut off.
func ordered(log []map[string]any, until float64) (all []map[string]any) {
	id := func(entry map[string]any) string { text, _ := entry["id"].(string); return text }
	for _, entry := range log {
		if number(entry["t"]) >= until {
			break
		}
		all = append(all, entry)
		for j := len(all) - 1; j > 0 && number(all[j]["t"])-number(all[j-1]["t"]) < 0.05 &&
			id(all[j]) < id(all[j-1]); j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all
}

func (r *cycleRun) spawned(h *handlers.Handler, d vectors.Fields) handlers.Func {
	return func(ctx context.Context, call *handlers.Invocation) error {
		behave := r.behaviour(h.ID, d)
		r.note(r.entry(call, behave))
		if err := write(call, behave); err != nil {
			return err
		}
		if err := r.linger(ctx, call, behave); err != nil {
			r.note(map[string]any{"what": "cancelled", "id": h.ID, "reason": flags(call)})
			if length := declared.Seconds(r.t, behave, "lingers_cancelled"); length != nil {
				time.Sleep(*length)
			}
			return err
		}
		stopped := false
		select {
		case <-call.LiveObject.Stopping():
			stopped = true
		default:
		}
		r.note(map[string]any{"what": "exit", "id": h.ID, "stopped": stopped, "reason": flags(call)})
		return declared.Raise(r.t, behave)
	}
}

func flags(call *handlers.Invocation) []any {
	all := []any{}
	live, _ := call.LiveObject.(interface{ Flags() background.StopReason })
	for name := range strings.SplitSeq(live.Flags().String(), ",") {
		if name != "" {
			all = append(all, name)
		}
	}
	sortTexts(all)
	return all
}

func sortTexts(all []any) {
	for i := range all {
		for j := i; j > 0 && all[j].(string) < all[j-1].(string); j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
}

// linger waits as the behaviour requires. It returns the error of the context.
func (r *cycleRun) linger(ctx context.Context, call *handlers.Invocation, behave vectors.Fields) error {
	if err := r.pause(ctx, behave, "takes"); err != nil {
		return err
	}
	switch behave.Text("until", "") {
	case "stopped":
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-call.LiveObject.Stopping():
		}
	case "cancelled":
		<-ctx.Done()
		return ctx.Err()
	}
	return r.pause(ctx, behave, "lingers")
}
