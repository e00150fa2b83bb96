package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/background"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

func TestVectorsTimer(t *testing.T) { playBackground(t, "timer") }

func TestVectorsDaemon(t *testing.T) { playBackground(t, "daemon") }

func playBackground(t *testing.T, family string) {
	vectors.Run(t, family, func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		var log []any
		var final any
		vectors.Bubble(t, func(t *testing.T) { log, final = replay(t, input) })
		expected := vectors.Known(t, want.Value, "log", "final")
		compare(t, "calls and exits", ordered(calls(expected.List("log"), false), number(input["until"])), ordered(calls(log, false), number(input["until"])), input["latency"] == nil)
		if want, got := compared(t, expected["final"]), compared(t, final); !alike(want, got) {
			t.Errorf("the final object: -want, +got:\n%s", cmp.Diff(want, got))
		}
	})
}

// ordered puts what happens at one moment, beside one another, into one order: by handlers. Kopf's runs are cut off before their last
// moment.
func ordered(log []map[string]any, until float64) (all []map[string]any) {
	id := func(entry map[string]any) string { text, _ := entry["id"].(string); return text }
	for _, entry := range log {
		if number(entry["t"]) >= until {
			break
		}
		all = append(all, entry)
		for j := len(all) - 1; j > 0 && number(all[j]["t"])-number(all[j-1]["t"]) < 0.05 && id(all[j]) < id(all[j-1]); j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all
}

func (r *cycleRun) setting(name string) time.Duration {
	if settings := r.input.Mapping("settings"); settings != nil {
		vectors.Known(r.t, map[string]any(settings), "background.cancellation_polling")
		return time.Duration(number(settings[name]) * float64(time.Second))
	}
	return 0
}

func (r *cycleRun) spawning(h *handlers.Handler, daemon bool, d vectors.Fields) *handlers.Handler {
	period := func(name string) time.Duration {
		if d[name] == nil {
			return 0
		}
		return time.Duration(number(d[name]) * float64(time.Second))
	}
	h.Family = handlers.Spawning
	h.Background = &handlers.Background{
		Daemon: daemon, Interval: period("interval"), Sharp: d.Flag("sharp"), Idle: period("idle"), CancelBackoff: period("cancellation_backoff"),
		CancelTimeout: period("cancellation_timeout"), CancelPolling: period("cancellation_polling"),
	}
	if d["initial_delay"] != nil {
		h.Background.InitialDelay = func(map[string]any) (time.Duration, error) { return period("initial_delay"), nil }
	}
	h.Call = func(ctx context.Context, call *handlers.Call) error {
		behave := r.behaviour(h.ID, d)
		entry := r.entry(call, behave)
		if behave.Flag("note_patch") {
			entry["patch_pending"] = false
		}
		r.note(entry)
		if err := r.write(call, behave); err != nil {
			return err
		}
		if err := r.linger(ctx, call, behave); err != nil {
			r.note(map[string]any{"what": "cancelled", "id": h.ID, "reason": flags(call)})
			if behave["lingers_cancelled"] != nil {
				time.Sleep(time.Duration(number(behave["lingers_cancelled"]) * float64(time.Second)))
			}
			return err
		}
		stopped := false
		select {
		case <-call.Live.Stopping():
			stopped = true
		default:
		}
		r.note(map[string]any{"what": "exit", "id": h.ID, "stopped": stopped, "reason": flags(call)})
		return raise(r.t, behave)
	}
	return h
}

func flags(call *handlers.Call) []any {
	all := []any{}
	live, _ := call.Live.(interface{ Flags() background.Reason })
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

// linger waits as the behaviour says. An error is that of the context.
func (r *cycleRun) linger(ctx context.Context, call *handlers.Call, behave vectors.Fields) error {
	pause := func(name string) error {
		if behave[name] == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(number(behave[name]) * float64(time.Second))):
			return nil
		}
	}
	if err := pause("takes"); err != nil {
		return err
	}
	switch until := behave.Text("until", ""); until {
	case "stopped":
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-call.Live.Stopping():
		}
	case "cancelled":
		<-ctx.Done()
		return ctx.Err()
	case "":
	default:
		r.t.Fatalf("the harness does not know how to wait until %q", until)
	}
	return pause("lingers")
}
