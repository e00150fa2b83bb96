package traces_test

import (
	"context"
	"errors"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

// settleTime is enough for all that follows without a delay.
const settleTime = 10 * time.Second

func succeed(context.Context, *Change) error { return nil }

func creation(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) { all.OnCreate("made", succeed) })
	create(s, settleTime)
}

func result(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(_ context.Context, c *Change) error {
			kopf.PatchField(c, "spec.port", 8080)
			kopf.PatchField(c, "status.phase", "Ready")
			c.SetResult("made by hand")
			return nil
		})
	})
	create(s, settleTime)
}

func finalizer(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", succeed)
		all.OnDelete("removed", succeed)
	})
	create(s, settleTime)
	remove(s, settleTime)
}

func finalizerByWebhook(s *traces.Story) {
	settings := kopf.Settings{Admission: kopf.AdmissionSettings{FinalizerOnCreate: true}}
	start(s, settings, func(all Widgets) {
		all.OnCreate("made", succeed)
		all.OnDelete("removed", succeed)
	})
	create(s, settleTime)
}

func update(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) { all.OnUpdate("resized", succeed) })
	create(s, settleTime)
	edit(s, "The user resizes it.", settleTime, `{"spec":{"size":2}}`)
	s.Step("The user changes its status.", settleTime, func() {
		s.Send("PATCH", objectPath+"/status", `{"status":{"phase":"Old"}}`)
	})
}

func editsDuringHandler(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnUpdate("resized", func(context.Context, *Change) error { time.Sleep(5 * time.Second); return nil })
	})
	create(s, settleTime)
	edit(s, "The user resizes it.", 2*time.Second, `{"spec":{"size":2}}`)
	edit(s, "The user resizes it again.", 30*time.Second, `{"spec":{"size":3}}`)
}

func revertedEdit(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) { all.OnUpdate("resized", retry(10*time.Second, 3)) })
	create(s, settleTime)
	edit(s, "The user resizes it.", 5*time.Second, `{"spec":{"size":2}}`)
	edit(s, "The user reverts that.", 30*time.Second, `{"spec":{"size":1}}`)
}

func leftFilters(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.MatchingLabels("team=a").OnCreate("made", retry(20*time.Second, 3))
	})
	create(s, 5*time.Second)
	edit(s, "The user moves it to another team.", 30*time.Second, `{"metadata":{"labels":{"team":"b"}}}`)
}

// retry returns a handler that asks for retries until it was called that often.
func retry(delay time.Duration, calls int) kopf.ChangeFunc[*kopf.Unstructured] {
	return func(_ context.Context, c *Change) error {
		if c.Retry+1 < calls {
			return kopf.Temporary(errors.New("not ready"), delay)
		}
		return nil
	}
}

func temporaryErrors(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) { all.OnCreate("made", retry(10*time.Second, 3)) })
	create(s, 40*time.Second)
}

func permanentError(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(context.Context, *Change) error { return kopf.Permanent(errors.New("no such size")) })
	})
	create(s, settleTime)
}

func control(s *traces.Story) {
	fails := true
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(context.Context, *Change) error {
			if fails {
				fails = false
				return kopf.Permanent(errors.New("no such size"))
			}
			return nil
		})
		all.OnUpdate("changed", succeed)
	})
	create(s, settleTime)
	edit(s, "The user runs the failed handler again.", settleTime,
		`{"metadata":{"annotations":{"widgets.example.org/handle-now":"failed:1"}}}`)
	edit(s, "The user pauses the object.", settleTime,
		`{"metadata":{"annotations":{"widgets.example.org/paused":"true"}}}`)
	edit(s, "The user changes it.", settleTime, `{"spec":{"size":2}}`)
	edit(s, "The user ends the pause.", settleTime, `{"metadata":{"annotations":{"widgets.example.org/paused":null}}}`)
}

func timeout(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(ctx context.Context, _ *Change) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, kopf.Timeout(3*time.Second))
	})
	create(s, settleTime)
}

func slowHandler(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("first", succeed)
		all.OnCreate("second", func(context.Context, *Change) error { time.Sleep(3 * time.Second); return nil })
		all.OnCreate("third", succeed)
	})
	create(s, settleTime)
}

func exit(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("first", succeed)
		all.OnCreate("second", func(context.Context, *Change) error { time.Sleep(3 * time.Second); return nil })
		all.OnCreate("third", func(ctx context.Context, _ *Change) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
	create(s, 3500*time.Millisecond)
	s.Stop()
}
