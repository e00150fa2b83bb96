package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// put returns a function that sets a field of the object to be written.
func put(value any, path ...string) func(*unstructuredObject) {
	return func(o *unstructuredObject) {
		Expect(unstructured.SetNestedField(o.Object, value, path...)).To(Succeed())
	}
}

var _ = Describe("What handlers patch", func() {
	const main, status = "PATCH", "PATCH status"
	specOnly := func(c *unstructuredChange) { c.Patch(put("x", "spec", "note")) }
	statusOnly := func(c *unstructuredChange) { c.Patch(put("x", "status", "host")) }
	both := func(c *unstructuredChange) { specOnly(c); statusOnly(c) }
	result := func(c *unstructuredChange) { c.SetResult("x") }
	all := func(c *unstructuredChange) { both(c); result(c); c.Patch(put("y", "status", "host")) }
	nothing := func(c *unstructuredChange) { c.Patch(func(*unstructuredObject) {}) }
	same := func(c *unstructuredChange) { c.Patch(put(int64(1), "spec", "size")) }

	// A patch that changes the essence is followed by an update even without update handlers, as in Kopf: one more
	// request.
	DescribeTable("is written with the progress in as few requests as the kind allows",
		func(ctx context.Context, handle func(*unstructuredChange), without, with []string) {
			ns := namespace(ctx)
			for _, kind := range []struct {
				plural string
				make   func(ns, name string, spec map[string]any) *unstructuredObject
				want   []string
			}{{"gadgets", gadget, without}, {"widgets", widget, with}} {
				name := "patching-" + kind.plural + ".example.org"
				op := kopf.New(name, settingsFor(ns))
				kopf.ForResource(
					op, "e2e.example.org/v1", kind.plural,
				).OnCreate("c", func(_ context.Context, c *unstructuredChange) error {
					handle(c)
					return nil
				})
				running := start(op)
				obj := kind.make(ns, kind.plural, map[string]any{"size": int64(1)})
				create(ctx, obj)
				Eventually(annotation(ctx, obj, name+lastHandledSuffix)).ShouldNot(BeNil())
				Eventually(
					func() []string { return running.requests.of(kind.plural) },
				).Should(Equal(kind.want), kind.plural)
				Consistently(
					func() []string { return running.requests.of(kind.plural) }, "200ms",
				).Should(Equal(kind.want), kind.plural)
			}
		},
		Entry("the main part", specOnly, []string{main, main}, []string{main, main}),
		Entry("the status", statusOnly, []string{main}, []string{status, main}),
		Entry("both", both, []string{main, main}, []string{status, main, main}),
		Entry("a result", result, []string{main}, []string{status, main}),
		Entry("everything, twice", all, []string{main, main}, []string{status, main, main}),
		Entry("nothing", nothing, []string{main}, []string{main}),
		Entry("a patch without an effect", same, []string{main}, []string{main}),
	)

	It("through the client is neither lost nor handled twice", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("own.example.org", settingsFor(ns))
		widgets := kopf.ForResource(op, "e2e.example.org/v1", "widgets")
		widgets.OnCreate("c", func(ctx context.Context, c *unstructuredChange) error {
			seen.add("create")
			c.Patch(put("ours", "spec", "ours"))
			c.SetResult("done")
			fresh := c.Object.DeepCopy()
			err := c.Client.Patch(
				ctx, fresh,
				client.RawPatch(
					types.MergePatchType,
					[]byte(`{"spec":{"past":"us"},"metadata":{"finalizers":["example.org/theirs"]}}`),
				),
			)
			if err != nil {
				return err
			}
			return c.Client.Status().Patch(
				ctx, fresh, client.RawPatch(types.MergePatchType, []byte(`{"status":{"past":"us"}}`)),
			)
		})
		widgets.OnUpdate("u", func(_ context.Context, c *unstructuredChange) error {
			for _, change := range c.Diff {
				seen.add("update %s", strings.Join(change.Path, "."))
			}
			return nil
		})
		running := start(op)
		obj := widget(ns, "own", map[string]any{"size": int64(1)})
		create(ctx, obj)
		Eventually(annotation(ctx, obj, "own.example.org"+lastHandledSuffix)).Should(ContainSubstring("past"))
		writes := len(running.requests.of("own"))
		Consistently(func() int { return len(running.requests.of("own")) }, "1s").Should(Equal(writes),
			"the operator does not react to its own writes forever")
		for _, path := range [][]string{{"spec", "past"}, {"status", "past"}} {
			Expect(field(ctx, obj, path...)()).To(Equal("us"))
		}
		Expect(field(ctx, obj, "spec", "ours")()).To(Equal("ours"))
		Expect(field(ctx, obj, "status", "c")()).To(Equal("done"))
		Expect(field(ctx, obj, "metadata", "finalizers")()).To(ContainElement("example.org/theirs"))
		Expect(seen.list()).To(
			HaveExactElements("create", "update spec.ours", "update spec.past"),
			"changes that the handler had not seen cause one update",
		)
		merge(ctx, obj, `{"metadata":{"finalizers":[]}}`)
	})

	It("logs a field that the schema drops once, with a solution", func(ctx context.Context) {
		ns := namespace(ctx)
		definition := crd("Schematic", true)
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields = nil
		installCRD(definition)
		op := kopf.New("schematic.example.org", settingsFor(ns))
		kopf.ForResource(
			op, "robustness.example.org/v1", "schematics",
		).OnCreate("c", func(_ context.Context, c *unstructuredChange) error {
			c.SetResult(map[string]any{"a": "b"})
			return nil
		})
		running := start(op)
		for _, name := range []string{"one", "two", "three"} {
			obj := raw("robustness.example.org/v1", "Schematic", ns, name, nil)
			delete(obj.Object, "spec")
			create(ctx, obj)
			Eventually(
				annotation(ctx, obj, "schematic.example.org"+lastHandledSuffix),
			).ShouldNot(BeNil(), "the creation is completed without the dropped field")
		}
		logs := string(running.logs.Contents())
		Expect(strings.Count(logs, "API server dropped a field")).To(Equal(1))
		Expect(logs).To(MatchRegexp(`x-kubernetes-preserve-unknown-fields.*"field":"status".*Kind=Schematic`))
	})
})
