package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// recorder returns an operator whose handlers record their id, the object and the diff.
func recorder(name, ns string, seen *calls) *kopf.Operator {
	op := kopf.New(name, settingsFor(ns))
	note := func(ctx context.Context, c *kopf.Change[*v1.Gadget]) error {
		seen.add("%s %s %v", strings.TrimPrefix(c.ID, "on-"), c.Object.Name, c.Diff)
		return nil
	}
	gadgets := kopf.For(op, &v1.Gadget{})
	gadgets.OnCreate("on-create", note)
	gadgets.OnUpdate("on-update", note)
	gadgets.OnDelete("on-delete", note)
	gadgets.OnResume("on-resume", note)
	return op
}

const (
	lastHandledSuffix = "/last-handled-configuration"
	finalizerSuffix   = "/finalizer"
)

var _ = Describe("The life of an object", func() {
	It("is created, updated with the exact diff, and deleted", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		running := start(recorder("life.example.org", ns, seen))
		obj := gadget(ns, "life", map[string]any{"size": int64(1), "owner": "me"})

		create(ctx, obj)
		Eventually(seen.list).Should(Equal([]string{`create life [add: {"spec":{"owner":"me","size":1}}]`}))
		Eventually(
			annotation(ctx, obj, "life.example.org"+lastHandledSuffix),
		).Should(Equal(`{"spec":{"owner":"me","size":1}}` + "\n"))

		merge(ctx, obj, `{"spec":{"size":2,"owner":null,"tags":["a"]}}`)
		Eventually(seen.list).Should(HaveExactElements(HavePrefix("create"),
			`update life [add spec.tags: ["a"] remove spec.owner: "me" change spec.size: 1 -> 2]`))
		Eventually(annotation(ctx, obj, "life.example.org"+lastHandledSuffix)).Should(ContainSubstring(`"size":2`))

		merge(ctx, obj, `{"status":{"phase":"Ready"}}`)
		remove(ctx, obj)
		Eventually(seen.list).Should(HaveExactElements(HavePrefix("create"), HavePrefix("update"), "delete life []"))
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(running.requests.of("life")).To(Equal([]string{"PATCH", "PATCH", "PATCH", "PATCH"}),
			"two writes for a creation that must be held, one for the update, "+
				"none for the change of the status, one for the deletion")
	})

	It("ends without a finalizer if the delete handler is optional", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("optional.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.OnCreate("c", func(
			context.Context, *kopf.Change[*v1.Gadget],
		) error {
			seen.add("create")
			return nil
		})
		gadgets.OnDelete("d", func(
			context.Context, *kopf.Change[*v1.Gadget],
		) error {
			seen.add("delete")
			return nil
		}, kopf.Optional())
		running := start(op)
		obj := gadget(ns, "optional", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "optional.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(field(ctx, obj, "metadata", "finalizers")()).To(BeNil())
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(running.requests.of("optional")).To(
			Equal([]string{"PATCH"}), "a creation without a finalizer needs one write",
		)
		Eventually(seen.list).Should(
			Equal([]string{"create", "delete"}),
			"an optional delete handler is called once for an object that disappears",
		)
	})

	It("is resumed once after a restart, and an unchanged object is not written to", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		first := start(recorder("resume.example.org", ns, seen))
		obj := gadget(ns, "resume", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "resume.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		first.stop()

		second := start(recorder("resume.example.org", ns, seen))
		Eventually(seen.list).Should(HaveExactElements(HavePrefix("create"), "resume resume []"))
		merge(ctx, obj, `{"metadata":{"labels":{"a":"b"}}}`)
		Eventually(seen.list).Should(
			HaveExactElements(HavePrefix("create"), HavePrefix("resume"), HavePrefix("update")),
		)
		Eventually(annotation(ctx, obj, "resume.example.org"+lastHandledSuffix)).Should(ContainSubstring("labels"))
		Expect(second.requests.of("resume")).To(Equal([]string{"PATCH"}), "only the update is written")
	})

	It("is updated for changes made while the operator was down", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		first := start(recorder("down.example.org", ns, seen))
		obj := gadget(ns, "down", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "down.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		first.stop()

		merge(ctx, obj, `{"spec":{"size":2}}`)
		merge(ctx, obj, `{"spec":{"size":3}}`)
		late := gadget(ns, "late", map[string]any{"size": int64(7)})
		create(ctx, late)

		start(recorder("down.example.org", ns, seen))
		Eventually(seen.list).Should(ConsistOf(HavePrefix("create down"),
			"update down [change spec.size: 1 -> 3]", "resume down [change spec.size: 1 -> 3]",
			HavePrefix("create late")))
	})

	It("is released if it was deleted while the operator was down", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		first := start(recorder("released.example.org", ns, seen))
		obj := gadget(ns, "released", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "released.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(field(ctx, obj, "metadata", "finalizers")()).To(Equal([]any{"released.example.org" + finalizerSuffix}))
		first.stop()
		remove(ctx, obj)
		Expect(now(ctx, obj)()).NotTo(BeNil(), "the finalizer keeps the deleted object")
		start(recorder("released.example.org", ns, seen))
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(seen.list()).To(HaveExactElements(HavePrefix("create"), "delete released []"))
	})
})
