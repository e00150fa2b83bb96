package e2e_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

type gadgetChange = kopf.Change[*v1.Gadget]

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

var _ = Describe("What happens while an object is being handled", func() {
	It("supersedes an unfinished creation by a deletion", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("superseded.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.OnCreate("c", func(context.Context, *gadgetChange) error {
			seen.add("create")
			return kopf.Temporary(fmt.Errorf("the cloud is not ready"), time.Hour)
		})
		gadgets.OnDelete("d", func(context.Context, *gadgetChange) error { seen.add("delete"); return nil })
		start(op)
		obj := gadget(ns, "superseded", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "superseded.example.org/c")).Should(
			ContainSubstring(`"message":"the cloud is not ready"`),
		)
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(seen.list()).To(Equal([]string{"create", "delete"}))
	})

	It("lets an edit in the middle of a creation follow as an update", func(ctx context.Context) {
		ns, seen, middle := namespace(ctx), &calls{}, newGate()
		op := kopf.New("middle.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.OnCreate("c", func(ctx context.Context, c *gadgetChange) error {
			seen.add("create %d", c.Object.Spec.Size)
			return middle.pass(ctx)
		})
		gadgets.OnUpdate("u", func(_ context.Context, c *gadgetChange) error {
			seen.add("update %d to %d", c.Old.Spec.Size, c.Object.Spec.Size)
			return nil
		})
		start(op)
		obj := gadget(ns, "middle", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(middle.entered).Should(Receive())
		merge(ctx, obj, `{"spec":{"size":2}}`)
		close(middle.opened)
		Eventually(seen.list).Should(Equal([]string{"create 1", "update 1 to 2"}))
		Eventually(annotation(ctx, obj,
			"middle.example.org"+lastHandledSuffix)).Should(Equal(`{"spec":{"size":2}}` + "\n"))
	})

	It("does not confuse a recreated object with the deleted one of the same name", func(ctx context.Context) {
		ns, seen, first := namespace(ctx), &calls{}, newGate()
		op := kopf.New("anew.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.OnCreate("c", func(ctx context.Context, c *gadgetChange) error {
			seen.add("create %d", c.Object.Spec.Size)
			c.Patch(func(g *v1.Gadget) { g.Status.Host = "host of " + c.Object.Spec.Owner })
			if c.Object.Spec.Size > 1 {
				return nil
			}
			return first.pass(ctx)
		})
		start(op)
		obj := gadget(ns, "anew", map[string]any{"size": int64(1), "owner": "old"})
		create(ctx, obj)
		Eventually(first.entered).Should(Receive())
		remove(ctx, obj)
		again := gadget(ns, "anew", map[string]any{"size": int64(2), "owner": "new"})
		create(ctx, again)
		Consistently(seen.list, "300ms").Should(
			Equal([]string{"create 1"}), "only one handler runs for an object name at a time",
		)
		close(first.opened)
		Eventually(seen.list).Should(Equal([]string{"create 1", "create 2"}))
		Eventually(field(ctx, again, "status", "host")).Should(Equal("host of new"))
		Eventually(annotation(ctx, again,
			"anew.example.org"+lastHandledSuffix)).Should(ContainSubstring(`"owner":"new"`))
	})

	It("handles a copy of a handled object as a new one", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("copy.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.OnCreate("c", func(
			_ context.Context, c *gadgetChange,
		) error {
			seen.add("create %s", c.Object.Name)
			return nil
		})
		gadgets.OnUpdate("u", func(
			_ context.Context, c *gadgetChange,
		) error {
			seen.add("update %s", c.Object.Name)
			return nil
		})
		start(op)
		obj := gadget(ns, "original", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "copy.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		body, err := now(ctx, obj)()
		Expect(err).NotTo(HaveOccurred())
		duplicate := &unstructured.Unstructured{Object: body}
		duplicate.SetName("duplicate")
		duplicate.SetResourceVersion("")
		duplicate.SetUID("")
		create(ctx, duplicate)
		Eventually(seen.list).Should(Equal([]string{"create original", "create duplicate"}))
		Eventually(annotation(ctx, duplicate, "copy.example.org/handled-uid")).Should(Equal(string(duplicate.GetUID())))
		Expect(annotation(ctx, duplicate, "copy.example.org/kopf-managed")()).To(
			Equal("yes"), "the marker still identifies the annotations for other operators",
		)
	})
})
