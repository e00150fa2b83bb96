package e2e_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

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

func gadgetsNamed(ns, prefix string, n int) (all []*unstructured.Unstructured) {
	for i := range n {
		all = append(all, gadget(ns, fmt.Sprintf("%s-%d", prefix, i), map[string]any{"size": int64(1)}))
	}
	return all
}

// connections ignores the goroutines of keep-alive connections, which outlive the operator.
func connections() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction(
			"net/http.(*persistConn).writeLoop",
		),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
	}
}

var _ = Describe("The end of an operator", func() {
	It("with 50 running handlers saves finished results and leaks no goroutines", func(ctx context.Context) {
		ns, seen, second := namespace(ctx), &calls{}, gate{make(chan struct{}, 100), make(chan struct{})}
		leaks := append(connections(), goleak.IgnoreCurrent())
		first := start(twoSteps("stopped.example.org", ns, seen, second.pass))
		objects := gadgetsNamed(ns, "stopped", 50)
		createMany(ctx, objects)
		Eventually(func() int { return len(second.entered) }).Should(Equal(50))
		first.stop()
		Eventually(func() error { return goleak.Find(leaks...) }).Should(Succeed())
		for _, obj := range objects {
			Expect(
				annotation(ctx, obj, "stopped.example.org/first")(),
			).To(ContainSubstring(`"success":true`), obj.GetName())
			Expect(annotation(ctx, obj, "stopped.example.org/second")()).To(
				ContainSubstring(`"retries":0`), "an interrupted attempt is not counted",
			)
			Expect(field(ctx, obj, "status", "first")()).To(Equal("done"))
		}
		close(second.opened)
		start(twoSteps("stopped.example.org", ns, seen, second.pass))
		for _, obj := range objects {
			Eventually(annotation(ctx, obj, "stopped.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		}
		counts := map[string]int{}
		for _, call := range seen.list() {
			counts[call]++
		}
		for _, obj := range objects {
			Expect(
				[]int{counts["first "+obj.GetName()], counts["second "+obj.GetName()]},
			).To(Equal([]int{1, 2}), obj.GetName())
		}
	})

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

	It("that leads passes leadership to another, and no change is handled twice", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		candidate := func(name string) (*runningOperator, func() error) {
			op := kopf.New("elected.example.org", settingsFor(ns))
			note := func(_ context.Context, c *gadgetChange) error {
				seen.add("%s %s by %s", c.ID, c.Object.Name, name)
				return nil
			}
			kopf.For(op, &v1.Gadget{}).OnCreate("create", note)
			kopf.For(op, &v1.Gadget{}).OnResume("resume", note)
			lease, renew, retry := time.Minute, 40*time.Second, 200*time.Millisecond
			return startManaged(config, ctrl.Options{
				LeaderElection: true, LeaderElectionID: "elected", LeaderElectionNamespace: ns,
				LeaderElectionReleaseOnCancel: true,
				LeaseDuration:                 &lease, RenewDeadline: &renew, RetryPeriod: &retry,
			}, op)
		}
		_, stopFirst := candidate("first")
		early := gadgetsNamed(ns, "early", 10)
		createMany(ctx, early)
		for _, obj := range early {
			Eventually(annotation(ctx, obj, "elected.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		}
		candidate("second")
		extra := gadget(ns, "extra", map[string]any{"size": int64(1)})
		create(ctx, extra)
		Eventually(annotation(ctx, extra, "elected.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveLen(11))
		Expect(seen.list()).To(HaveEach(HaveSuffix("by first")), "only the leader calls handlers")

		Expect(stopFirst()).To(Succeed())
		late := gadget(ns, "late", map[string]any{"size": int64(1)})
		create(ctx, late)
		Eventually(annotation(ctx, late, "elected.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Eventually(seen.list).Should(HaveLen(11 + 11 + 1))
		Expect(seen.list()[11:]).To(HaveEach(HaveSuffix("by second")))
		Expect(seen.list()[11:]).To(ContainElements("create late by second", "resume extra by second"))
	})

	It("and a restart resumes each of many objects once without a write", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		objects := gadgetsNamed(ns, "resumed", manyObjects)
		first := start(recorder("many.example.org", ns, seen))
		createMany(ctx, objects)
		Eventually(seen.list).Should(HaveLen(manyObjects))
		for _, obj := range objects {
			Eventually(annotation(ctx, obj, "many.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		}
		first.stop()
		begun := time.Now()
		second := start(recorder("many.example.org", ns, seen))
		Eventually(seen.list).Should(HaveLen(2 * manyObjects))
		GinkgoWriter.Println("resumed", manyObjects, "objects in", time.Since(begun))
		for _, obj := range objects {
			Expect(second.requests.of(obj.GetName())).To(BeEmpty())
		}
		second.stop()
		Expect(seen.list()[manyObjects:]).To(HaveEach(HavePrefix("resume")))
	})
})

const manyObjects = 300
