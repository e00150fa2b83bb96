package traces_test

import (
	"context"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

func patterns(s *traces.Story) {
	start(s, kopf.Settings{Namespaces: []string{"team-*"}}, func(all Widgets) { all.OnCreate("made", succeed) })
	s.Step("A user creates a namespace.", settleTime, func() {
		s.Send("POST", "/api/v1/namespaces", `{"metadata":{"name":"team-a"}}`)
	})
	s.Step("The user creates a widget there.", settleTime, func() {
		const there = "/apis/example.org/v1/namespaces/team-a/widgets"
		s.Send("POST", there, `{"metadata":{"name":"one"},"spec":{"size":1}}`)
	})
	s.Step("The user creates a widget elsewhere.", settleTime, func() {
		s.Send("POST", collection, `{"metadata":{"name":"two"},"spec":{"size":1}}`)
	})
}

func postedEvents(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.On("sized", kopf.CreateUpdateResume(), func(_ context.Context, c *Change) error {
			c.Info("Sized", "The widget has its size")
			return nil
		})
	})
	create(s, settleTime)
	edit(s, "The user resizes it.", settleTime, `{"spec":{"size":2}}`)
}
