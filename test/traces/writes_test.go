package traces_test

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/test/traces"
)

// refuseStatus answers as an API server whose schema refuses the status.
func refuseStatus(_ context.Context, r memapi.Request) error {
	if r.Subresource == "status" {
		return apierrors.NewInvalid(schema.GroupKind{Group: "example.org", Kind: "Widget"}, "one", nil)
	}
	return nil
}

func flush(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(ctx context.Context, c *Change) error {
			if c.Retry > 0 {
				return nil
			}
			kopf.PatchField(c, "status.phase", "Making")
			if err := c.Flush(ctx); err != nil {
				return err
			}
			time.Sleep(2 * time.Second)
			return kopf.Temporary(errors.New("not ready"), 5*time.Second)
		})
	})
	create(s, 20*time.Second)
}

func refusedFlush(s *traces.Story) {
	s.Connection.Before = refuseStatus
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(ctx context.Context, c *Change) error {
			kopf.PatchField(c, "status.phase", "Making")
			if err := c.Flush(ctx); err != nil {
				return kopf.Permanent(err)
			}
			return nil
		})
		all.OnCreate("other", succeed)
	})
	create(s, settleTime)
}

func refusedStatus(s *traces.Story) {
	s.Connection.Before = refuseStatus
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(_ context.Context, c *Change) error {
			kopf.PatchField(c, "spec.port", 8080)
			kopf.PatchField(c, "status.phase", "Unknown")
			return nil
		})
	})
	create(s, settleTime)
}

func isPatch(r memapi.Request) bool { return r.Verb == "patch" && r.Resource.Plural == widgets.Plural }

func conflicts(s *traces.Story) {
	edits := 0
	s.Connection.Before = func(_ context.Context, r memapi.Request) error {
		if isPatch(r) && edits < 2 {
			edits++
			s.Send("PATCH", objectPath, map[int]string{1: `{"spec":{"size":2}}`, 2: `{"spec":{"size":3}}`}[edits])
		}
		return nil
	}
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(_ context.Context, c *Change) error {
			c.TryPatch(func(object *kopf.Unstructured) error {
				return kopf.SetField(object, "status.double", 2*kopf.GetFieldOr(object, "spec.size", 0))
			})
			return nil
		})
	})
	create(s, settleTime)
}

func lostAnswer(s *traces.Story) {
	lost := false
	s.Connection.After = func(_ context.Context, r memapi.Request) error {
		if isPatch(r) && !lost {
			lost = true
			return errors.New("connection reset by peer")
		}
		return nil
	}
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(_ context.Context, c *Change) error {
			kopf.PatchField(c, "spec.port", 8080)
			return nil
		})
	})
	create(s, 20*time.Second)
}

func subHandlers(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(_ context.Context, c *Change) error {
			c.Sub("disk", succeed)
			c.Sub("network", retry(10*time.Second, 2))
			c.Sub("user", succeed)
			return nil
		})
	})
	create(s, 30*time.Second)
}

func dependentSubHandlers(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnCreate("made", func(ctx context.Context, c *Change) error {
			c.Sub("user", succeed, kopf.After("disk"))
			c.Sub("disk", retry(10*time.Second, 2))
			if err := c.RunSubs(ctx); err != nil {
				return err
			}
			kopf.PatchField(c, "status.phase", "Ready")
			return nil
		})
	})
	create(s, 30*time.Second)
}

func deletion(s *traces.Story) {
	start(s, kopf.Settings{}, func(all Widgets) { all.OnDelete("removed", retry(10*time.Second, 2)) })
	create(s, settleTime)
	remove(s, 30*time.Second)
}

func heldDeletion(s *traces.Story) {
	fails := true
	start(s, kopf.Settings{}, func(all Widgets) {
		all.OnDelete("removed", func(context.Context, *Change) error {
			if fails {
				fails = false
				return kopf.Permanent(errors.New("it is in use"))
			}
			return nil
		}, kopf.HoldOnFailure())
	})
	create(s, settleTime)
	remove(s, 30*time.Second)
	edit(s, "The user frees it.", settleTime, `{"spec":{"size":0}}`)
}
