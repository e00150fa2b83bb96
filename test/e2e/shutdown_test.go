package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// gate blocks a handler until the spec opens it.
type gate struct{ entered, opened chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 10), make(chan struct{})} }

func (g gate) pass(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// twoSteps returns an operator with two create handlers; the second calls the given function.
func twoSteps(name, ns string, seen *calls, second func(context.Context) error) *kopf.Operator {
	op := kopf.New(name, settingsFor(ns))
	gadgets := kopf.For(op, &v1.Gadget{})
	gadgets.OnCreate("first", func(_ context.Context, c *gadgetChange) error {
		seen.add("first %s", c.Object.Name)
		c.SetResult("done")
		return nil
	})
	gadgets.OnCreate("second", func(ctx context.Context, c *gadgetChange) error {
		seen.add("second %s", c.Object.Name)
		return second(ctx)
	})
	return op
}

var _ = Describe("The end of an operator", func() {
	It("is not blocked by a handler that ignores its context, and saves the other results",
		func(ctx context.Context) {
			ns, seen, deaf := namespace(ctx), &calls{}, newGate()
			patience := 5 * time.Second
			running, last := startManaged(config, ctrl.Options{GracefulShutdownTimeout: &patience},
				twoSteps("deaf.example.org", ns, seen, func(context.Context) error {
					return deaf.pass(context.Background())
				}))
			DeferCleanup(func() { close(deaf.opened) })
			obj := gadget(ns, "deaf", map[string]any{"size": int64(1)})
			create(ctx, obj)
			Eventually(deaf.entered).Should(Receive())
			Expect(last()).To(MatchError(ContainSubstring("grace period")),
				"the manager reports a goroutine that did not stop in time")
			Expect(running.done).To(BeClosed())
			Expect(annotation(ctx, obj, "deaf.example.org/first")()).To(ContainSubstring(`"success":true`))
			Expect(field(ctx, obj, "status", "first")()).To(Equal("done"))
		})

	It("is not caused by the manager's reconciliation timeout, which does not apply to handlers",
		func(ctx context.Context) {
			ns, seen, slow := namespace(ctx), &calls{}, newGate()
			startManaged(config,
				ctrl.Options{Controller: ctrlconfig.Controller{ReconciliationTimeout: time.Millisecond}},
				twoSteps("limited.example.org", ns, seen, slow.pass))
			obj := gadget(ns, "limited", map[string]any{"size": int64(1)})
			create(ctx, obj)
			Eventually(slow.entered).Should(Receive())
			Consistently(slow.entered, "200ms").ShouldNot(Receive())
			close(slow.opened)
			Eventually(annotation(ctx, obj, "limited.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
			Expect(seen.list()).To(Equal([]string{"first limited", "second limited"}))
		})
})
