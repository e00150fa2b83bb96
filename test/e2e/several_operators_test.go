package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

var _ = Describe("Kinds and operators beside each other", func() {
	It("handles two kinds in one operator, with and without a status subresource", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("kinds.example.org", settingsFor(ns))
		kopf.For(op, &v1.Widget{}).OnCreate("c", func(_ context.Context, c *kopf.Change[*v1.Widget]) error {
			seen.add("widget %s", c.Object.Name)
			c.Patch(func(w *v1.Widget) { w.Status.Phase = "Ready" })
			c.SetResult("made")
			return nil
		})
		kopf.For(op, &v1.Gadget{}).OnCreate("c", func(_ context.Context, c *kopf.Change[*v1.Gadget]) error {
			seen.add("gadget %s", c.Object.Name)
			c.Patch(func(g *v1.Gadget) { g.Status.Phase = "Ready" })
			c.SetResult("made")
			return nil
		})
		running := start(op)
		w, g := widget(ns, "with", map[string]any{"size": int64(1)}), gadget(
			ns, "without", map[string]any{"size": int64(1)},
		)
		create(ctx, w)
		create(ctx, g)
		for _, obj := range []*unstructured.Unstructured{w, g} {
			Eventually(annotation(ctx, obj, "kinds.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
			Expect(field(ctx, obj, "status", "phase")()).To(Equal("Ready"))
			Expect(field(ctx, obj, "status", "c")()).To(Equal("made"))
		}
		Expect(seen.list()).To(ConsistOf("widget with", "gadget without"))
		Expect(running.requests.of("with")).To(
			Equal([]string{"PATCH status", "PATCH"}),
			"the status is written first, then the patch that completes the creation",
		)
		Expect(running.requests.of("without")).To(Equal([]string{"PATCH"}))
	})

	It("lets two operators with different names handle one kind, each with its progress", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		running := start(recorder("one.example.org", ns, seen), recorder("two.example.org", ns, seen))
		obj := gadget(ns, "shared", map[string]any{"size": int64(1)})
		create(ctx, obj)
		for _, name := range []string{"one.example.org", "two.example.org"} {
			Eventually(annotation(ctx, obj, name+lastHandledSuffix)).Should(Equal(`{"spec":{"size":1}}` + "\n"))
		}
		merge(ctx, obj, `{"spec":{"size":2}}`)
		for _, name := range []string{"one.example.org", "two.example.org"} {
			Eventually(annotation(ctx, obj, name+lastHandledSuffix)).Should(Equal(`{"spec":{"size":2}}` + "\n"))
		}
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create"), HavePrefix("create"), HavePrefix("update"),
			HavePrefix("update"), HavePrefix("delete"), HavePrefix("delete")),
			"neither operator reacts to the writes of the other")
		Eventually(func() int {
			return len(running.requests.of("shared")) - running.requests.refusedOf("shared")
		}).Should(Equal(8), "each operator writes four times, not counting finalizer conflicts")
	})

	It("handles typed and dynamic selections of one kind together, in the order of registration",
		func(ctx context.Context) {
			ns, seen := namespace(ctx), &calls{}
			op := kopf.New("selections.example.org", settingsFor(ns))
			kopf.ForResource(op, "e2e.example.org/v1", "gadgets").OnCreate("dynamic",
				func(_ context.Context, c *kopf.Change[*unstructured.Unstructured]) error {
					size, _, _ := unstructured.NestedInt64(c.Object.Object, "spec", "size")
					seen.add("dynamic %d", size)
					c.Patch(func(u *unstructured.Unstructured) {
						_ = unstructured.SetNestedField(u.Object, "by-dynamic", "status", "host")
					})
					return nil
				})
			kopf.For(op, &v1.Gadget{}).MatchingLabels("tier in (prod,stage),!paused").OnCreate("typed",
				func(_ context.Context, c *gadgetChange) error {
					seen.add("typed after %s", c.Object.Status.Host)
					return nil
				})
			kopf.For(op, &v1.Gadget{}).When(
				func(_ context.Context, g *v1.Gadget) bool { return g.Spec.Size > 100 },
			).OnCreate("large",
				func(context.Context, *gadgetChange) error { seen.add("large"); return nil })
			start(op)
			obj := gadget(ns, "selected", map[string]any{"size": int64(5)})
			obj.SetLabels(map[string]string{"tier": "prod"})
			create(ctx, obj)
			Eventually(annotation(ctx, obj, "selections.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
			Expect(seen.list()).To(
				Equal([]string{"dynamic 5", "typed after by-dynamic"}),
				"a handler gets the changes of the handlers before it",
			)
		})

	It("skips an object that does not decode until it is corrected", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		running := start(recorder("decoding.example.org", ns, seen))
		bad := gadget(ns, "bad", map[string]any{"size": "three"})
		create(ctx, bad)
		Eventually(running.logs).Should(
			gbytes.Say(`Cannot call the handler with this object.*"name":"bad".*"handler":"on-create".*size`),
		)
		good := gadget(ns, "good", map[string]any{"size": int64(3)})
		create(ctx, good)
		Eventually(annotation(ctx, good, "decoding.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		merge(ctx, bad, `{"spec":{"size":3}}`)
		Eventually(annotation(ctx, bad, "decoding.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create good"), HavePrefix("create bad")))
		Expect(running.requests.of("bad")).To(
			HaveLen(3), "only the finalizer, the progress and the completion are written",
		)
	})
})
