package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

type (
	// Change is a change of a KopfExample, which does not have a Go type.
	Change = kopf.Change[*kopf.Unstructured]
	// Run is one tick of its timer.
	Run = kopf.Task[*kopf.Unstructured]
)

// post sends letters. The program logs them; a test uses its own implementation.
type post interface {
	send(ctx context.Context, to, text string) error
}

// office has the handlers and their dependencies.
type office struct {
	post post
	// byAddress has the names of all objects by their address.
	byAddress *kopf.Index[string, string]
	// lastLetters is the last letter that was sent for an object.
	lastLetters *kopf.Memo[string]
}

// newOperator returns the operator without starting it, so that tests can run it as well.
func newOperator(p post, settings ...kopf.Settings) *kopf.Operator {
	op := kopf.New("testing.kopf.dev", settings...)
	examples := kopf.ForResource(op, "kopfexamples.kopf.dev")
	o := &office{
		post: p, byAddress: kopf.NewIndex(examples, "at-address", addressOf),
		lastLetters: kopf.NewMemo[string](examples),
	}
	examples.On("letter", []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, o.letter, kopf.Retries(5))
	examples.OnDelete("farewell", o.farewell)
	examples.Timer("reminder", 24*time.Hour, o.reminder, kopf.InitialDelay(24*time.Hour))
	// What Ensure does with the ConfigMaps, for the command manifests.
	op.Needs(
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"get", "create", "patch", "delete"},
		},
		rbacv1.PolicyRule{
			APIGroups: []string{"kopf.dev"}, Resources: []string{"kopfexamples/finalizers"},
			Verbs: []string{"update"},
		},
	)
	return op
}

// addressOf returns the address of an object as its key in the index.
func addressOf(_ context.Context, example *kopf.Unstructured) (map[string]string, error) {
	return map[string]string{kopf.GetFieldOr(example, "spec.field", ""): example.GetName()}, nil
}

// letter sends a letter and stores a copy of it in a config map. An object without an address is a permanent error; a
// failure of the post is retried. The same letter is not sent twice.
func (o *office) letter(ctx context.Context, c *Change) error {
	address, err := kopf.GetField[string](c.Object, "spec.field")
	if err != nil {
		return kopf.Permanent(fmt.Errorf("there is no address: %w", err))
	}
	text := fmt.Sprintf("Dear %s, you are one of %d here", c.Object.GetName(), o.byAddress.Count(address))
	if last := o.lastLetters.Of(c.Object); *last != address+text {
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

// farewell blocks the deletion until the letter is sent.
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
