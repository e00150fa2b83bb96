package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	// Change is one of a KopfExample, which has no Go type.
	Change = kopf.Change[*kopf.Unstructured]
	// Run is one tick of its timer.
	Run = kopf.Task[*kopf.Unstructured]
)

// post is what the operator is there for: in the program it is the log, in a test it is whatever the test wants.
type post interface {
	send(ctx context.Context, to, text string) error
}

// office has the handlers, and what they need.
type office struct {
	post post
	// atAddress are the names of the objects with one address.
	atAddress *kopf.Index[string, string]
	// last is the letter that an object was sent last.
	last *kopf.Memo[string]
}

// newOperator is all of the operator but the program around it, so that tests can run it as well.
func newOperator(p post, settings ...kopf.Settings) *kopf.Operator {
	op := kopf.New("testing.kopf.dev", settings...)
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	o := &office{
		post: p, atAddress: kopf.NewIndex(examples, "at-address", addressOf), last: kopf.NewMemo[string](examples),
	}
	examples.On("letter", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, o.letter, kopf.Retries(5))
	examples.OnDelete("farewell", o.farewell)
	examples.Timer("reminder", 24*time.Hour, o.reminder, kopf.InitialDelay(24*time.Hour))
	return op
}

// addressOf says under which address an object is found.
func addressOf(_ context.Context, example *kopf.Unstructured) (map[string]string, error) {
	return map[string]string{kopf.GetFieldOr(example, "spec.field", ""): example.GetName()}, nil
}

// letter sends a letter, and keeps a copy of it in a config map. Who has no address gets none, for good; while the post
// does not work, it tries again. Nobody gets the same letter again.
func (o *office) letter(ctx context.Context, c *Change) error {
	address, err := kopf.GetField[string](c.Object, "spec.field")
	if err != nil {
		return kopf.Permanent(fmt.Errorf("there is no address: %w", err))
	}
	text := fmt.Sprintf("Dear %s, you are one of %d here", c.Object.GetName(), o.atAddress.Count(address))
	if last := o.last.Of(c.Object); *last != address+text {
		if err := o.post.send(ctx, address, text); err != nil {
			return kopf.Temporary(err, time.Hour)
		}
		*last = address + text
		c.Info("Sent", "a letter to "+address)
	}
	c.SetResult(text)

	sent := &corev1.ConfigMap{Data: map[string]string{"text": text}}
	sent.Name = c.Object.GetName() + "-letter"
	return c.Ensure(ctx, sent)
}

// farewell holds the object until it is sent.
func (o *office) farewell(ctx context.Context, c *Change) error {
	return o.post.send(ctx, kopf.GetFieldOr(c.Object, "spec.field", "the office"), "Farewell, "+c.Object.GetName())
}

// reminder counts the days.
func (o *office) reminder(_ context.Context, r *Run) error {
	r.TryPatch(func(example *kopf.Unstructured) error {
		return kopf.SetField(example, "status.reminders", kopf.GetFieldOr(example, "status.reminders", 0)+1)
	})
	return nil
}
