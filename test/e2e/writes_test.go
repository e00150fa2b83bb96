package e2e_test

import (
	"context"
	"slices"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// reportingOperator returns an operator that handles all changes of one kind, with results if results is set.
func reportingOperator(ns, kind string, results, deletes bool) *kopf.Operator {
	op := kopf.New("thrifty.example.org", settingsFor(ns))
	objects := kopf.ForResource(op, "e2e.example.org/v1", kind)
	handle := func(_ context.Context, c *unstructuredChange) error {
		if results {
			c.SetResult(map[string]any{"reason": c.Reason})
		}
		return nil
	}
	objects.OnCreate("c", handle)
	objects.OnUpdate("u", handle)
	if deletes {
		objects.OnDelete("d", handle)
	}
	return op
}

var _ = Describe("The writes to one object", func() {
	type object func(ns, name string, spec map[string]any) *unstructured.Unstructured
	const main, status = "PATCH", "PATCH status"

	DescribeTable("are as few as possible",
		func(
			ctx context.Context, kind string, object object, results, deletes bool, created, updated, deleted []string,
		) {
			ns := namespace(ctx)
			running := start(reportingOperator(ns, kind, results, deletes))
			obj := object(ns, "thrifty", map[string]any{"size": int64(1)})
			wrote := func() []string { return running.requests.of("thrifty") }
			handled := func(size string) {
				GinkgoHelper()
				Eventually(
					annotation(ctx, obj, "thrifty.example.org"+lastHandledSuffix),
				).Should(ContainSubstring(`"size":` + size))
			}

			create(ctx, obj)
			handled("1")
			Eventually(wrote).Should(Equal(created))
			merge(ctx, obj, `{"spec":{"size":2}}`)
			handled("2")
			Eventually(wrote).Should(Equal(slices.Concat(created, updated)))
			merge(ctx, obj, `{"metadata":{"managedFields":[{}]}}`)
			merge(ctx, obj, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`)
			Consistently(wrote, "2s").Should(
				Equal(slices.Concat(created, updated)), "a change outside of the essence causes no write",
			)
			remove(ctx, obj)
			Eventually(now(ctx, obj)).Should(BeNil())
			Eventually(wrote).Should(Equal(slices.Concat(created, updated, deleted)))
		},
		Entry("without a status subresource, with a delete handler", "gadgets", gadget, true, true,
			[]string{main, main}, []string{main}, []string{main}),
		Entry("without a status subresource, without a delete handler", "gadgets", gadget, true, false,
			[]string{main}, []string{main}, []string(nil)),
		Entry("with a status subresource that does not change", "widgets", widget, false, true,
			[]string{main, main}, []string{main}, []string{main}),
		Entry("with a status subresource that changes", "widgets", widget, true, true,
			[]string{main, status, main}, []string{status, main}, []string{status, main}),
	)

	It("lose no result if the operator ends between the status and the main patch", func(ctx context.Context) {
		ns := namespace(ctx)
		obj := widget(ns, "between", map[string]any{"size": int64(1)})
		connection, lost := newRequests(), &atomic.Int32{}
		connection.shouldDrop = func(name, what string) bool {
			if name != "between" || what != main {
				return false
			}
			lost.Add(1)
			return true
		}
		first := startWith(config, connection, reportingOperator(ns, "widgets", true, false))
		create(ctx, obj)
		Eventually(lost.Load).Should(BeNumerically(">", 0))
		first.stop()
		Expect(field(ctx, obj, "status", "c", "reason")()).To(Equal("create"),
			"the status is written before the main patch")
		Expect(annotation(ctx, obj, "thrifty.example.org"+lastHandledSuffix)()).To(BeNil(),
			"the creation is incomplete without the main patch")

		start(reportingOperator(ns, "widgets", true, false))
		Eventually(annotation(ctx, obj, "thrifty.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(field(ctx, obj, "status", "c", "reason")()).To(Equal("create"))
	})
})
