package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

type gadgetChange = kopf.Change[*v1.Gadget]

// recorder returns an operator whose handlers record their id, the object and the diff.
func recorder(name, ns string, seen *calls) *kopf.Operator {
	op := kopf.New(name, settingsFor(ns))
	note := func(ctx context.Context, c *gadgetChange) error {
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

const lastHandledSuffix = "/last-handled-configuration"

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
})
