package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

var _ = Describe("An object that no handler selects", func() {
	It("causes no log line, annotation, finalizer or request", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("stealth.example.org", settingsFor(ns))
		call := func(_ context.Context, c *gadgetChange) error { seen.add("%s %s", c.ID, c.Object.Name); return nil }
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.MatchingLabels("mine").OnCreate("c", call)
		gadgets.WithLabel("tier", kopf.Absent).WithAnnotation("mine", kopf.Present).OnUpdate("u", call)
		gadgets.When(func(_ context.Context, g *v1.Gadget) bool { return g.Spec.Size > 10 }).OnDelete("d", call)
		gadgets.OnResume("r", call, kopf.InField("spec.owner"), kopf.Value("me"))
		running := start(op)
		obj := gadget(ns, "stranger", map[string]any{"size": int64(1), "owner": "you"})
		obj.SetLabels(map[string]string{"tier": "gold"})
		create(ctx, obj)
		merge(ctx, obj, `{"spec":{"size":2}}`)
		merge(ctx, obj, `{"metadata":{"labels":{"other":"yes"}}}`)
		acquainted := gadget(ns, "mine", map[string]any{"size": int64(1)})
		acquainted.SetLabels(map[string]string{"mine": "yes"})
		create(ctx, acquainted)
		Eventually(
			annotation(ctx, acquainted, "stealth.example.org"+lastHandledSuffix),
		).ShouldNot(BeNil(), "a later object is handled, so earlier events have been processed")
		Expect(field(ctx, obj, "metadata", "annotations")()).To(BeNil())
		Expect(field(ctx, obj, "metadata", "finalizers")()).To(BeNil())
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(running.requests.of("stranger")).To(BeEmpty())
		Expect(string(running.logs.Contents())).NotTo(ContainSubstring("stranger"))
		Expect(seen.list()).To(Equal([]string{"c mine"}))
	})
})

var _ = Describe("Raw events", func() {
	It("come in order, the last one with the last state", func(ctx context.Context) {
		const edits = 100
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("raw.example.org", settingsFor(ns))
		kopf.For(op, &v1.Gadget{}).OnEvent("e", func(_ context.Context, e *kopf.WatchEvent[*v1.Gadget]) error {
			seen.add("%s %d", e.Type, e.Object.Spec.Size)
			if e.Type == kopf.WatchEventAdded {
				return errors.New("of no consequence")
			}
			return nil
		})
		listed := gadget(ns, "listed", map[string]any{"size": int64(-1)})
		create(ctx, listed)
		running := start(op)
		Eventually(seen.list).Should(Equal([]string{" -1"}), "events of listed objects have an empty type")
		obj := gadget(ns, "quick", map[string]any{"size": int64(0)})
		create(ctx, obj)
		for i := range edits {
			merge(ctx, obj, fmt.Sprintf(`{"spec":{"size":%d}}`, i+1))
		}
		remove(ctx, obj)
		Eventually(seen.list).Should(ContainElement(fmt.Sprintf("DELETED %d", edits)))
		expected := []string{" -1", "ADDED 0"}
		for i := range edits {
			expected = append(expected, fmt.Sprintf("MODIFIED %d", i+1))
		}
		Expect(seen.list()).To(
			Equal(append(expected, fmt.Sprintf("DELETED %d", edits))), "each event arrives once and in order",
		)
		Expect(running.requests.of("quick")).To(BeEmpty(), "event handlers do not write progress")
		Expect(
			strings.Count(string(running.logs.Contents()), "of no consequence"),
		).To(Equal(1), "an error of an event handler is logged and not retried")
	})
})
