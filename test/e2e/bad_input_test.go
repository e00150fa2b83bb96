package e2e_test

import (
	"context"
	"math"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// requireOthersHandled requires that the operator still handles another object of the kind.
func requireOthersHandled(ctx context.Context, ns, operator string) {
	GinkgoHelper()
	other := gadget(ns, "other", map[string]any{"size": int64(9)})
	create(ctx, other)
	Eventually(annotation(ctx, other, operator+lastHandledSuffix)).ShouldNot(BeNil())
	remove(ctx, other)
	Eventually(now(ctx, other)).Should(BeNil())
}

var _ = Describe("Bad input", func() {
	DescribeTable("in the stored progress blocks only that object and not its deletion",
		func(ctx context.Context, operator, key, value, complaint string) {
			ns, seen := namespace(ctx), &calls{}
			bad := gadget(ns, "bad", map[string]any{"size": int64(1)})
			bad.SetAnnotations(map[string]string{operator + key: value})
			bad.SetFinalizers([]string{operator + finalizerSuffix})
			create(ctx, bad)
			running := start(recorder(operator, ns, seen))
			Eventually(running.logs).Should(
				gbytes.Say(`Cannot handle the object until it is changed.*"name":"bad".*on-create.*` + complaint),
			)
			requireOthersHandled(ctx, ns, operator)
			Expect(running.requests.of("bad")).To(BeEmpty(), "an object with unreadable progress is not written to")
			logged := string(running.logs.Contents())
			Expect(strings.Count(logged, "Cannot handle the object until")).To(Equal(1),
				"the error is logged once per object")
			remove(ctx, bad)
			Eventually(now(ctx, bad)).Should(BeNil())
			Expect(seen.list()).To(ContainElement(HavePrefix("delete bad")))
		},
		Entry(
			"a last-handled configuration that is not JSON", "notjson.example.org", lastHandledSuffix, "{oops",
			"last-handled-configuration",
		),
		Entry(
			"a last-handled configuration that is not an object", "nomap.example.org", lastHandledSuffix, "[1]",
			"last-handled-configuration",
		),
		Entry("a record that is not JSON", "recordjson.example.org", "/on-create", "oops", "on-create"),
		Entry("a record with wrong types", "recordtypes.example.org", "/on-create", `{"retries":"three"}`, "retries"),
	)

	It("that is too large to store is handled once, with a log line", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		first := start(recorder("large.example.org", ns, seen))
		obj := gadget(ns, "large", map[string]any{"size": int64(1), "payload": strings.Repeat("x", 300<<10)})
		create(ctx, obj)
		Eventually(first.logs).Should(gbytes.Say(`too large to remember.*"name":"large".*on-create`))
		Eventually(annotation(ctx, obj, "large.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		first.stop()
		second := start(recorder("large.example.org", ns, seen))
		Eventually(seen.list).Should(
			HaveExactElements(HavePrefix("create"), HavePrefix("resume")),
			"an object that is too large to store is not created again",
		)
		merge(ctx, obj, `{"spec":{"size":2}}`)
		Eventually(seen.list).Should(
			HaveExactElements(HavePrefix("create"), HavePrefix("resume"), HavePrefix("update")),
		)
		requireOthersHandled(ctx, ns, "large.example.org")
		remove(ctx, obj)
		Eventually(now(ctx, obj)).Should(BeNil())
		Expect(second.requests.refusedOf("large")).To(BeZero())
	})

	It("a panic of a handler counts as a failed attempt", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("panics.example.org", settingsFor(ns))
		gadgets := kopf.For(op, &v1.Gadget{})
		gadgets.MatchingLabels("panic").OnCreate("c", func(context.Context, *gadgetChange) error {
			seen.add("call")
			panic("the roof is on fire")
		}, kopf.Retries(2), kopf.Backoff(time.Millisecond))
		gadgets.OnCreate("calm", func(context.Context, *gadgetChange) error { return nil })
		running := start(op)
		obj := gadget(ns, "panicking", map[string]any{"size": int64(1)})
		obj.SetLabels(map[string]string{"panic": "yes"})
		create(ctx, obj)
		Eventually(running.logs).Should(gbytes.Say(`"name":"panicking".*"handler":"c".*panic: the roof is on fire`))
		Eventually(annotation(ctx, obj, "panics.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveLen(2))
		requireOthersHandled(ctx, ns, "panics.example.org")
	})

	It("a result that cannot be encoded as JSON fails its handler permanently", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("results.example.org", settingsFor(ns))
		kopf.For(op, &v1.Gadget{}).MatchingLabels("bad").OnCreate("c", func(_ context.Context, c *gadgetChange) error {
			seen.add("call")
			c.SetResult(math.NaN())
			return nil
		})
		kopf.For(op, &v1.Gadget{}).OnCreate("good", func(context.Context, *gadgetChange) error { return nil })
		running := start(op)
		obj := gadget(ns, "unmarshalable", map[string]any{"size": int64(1)})
		obj.SetLabels(map[string]string{"bad": "yes"})
		create(ctx, obj)
		Eventually(running.logs).Should(gbytes.Say(`failed permanently.*"name":"unmarshalable".*"handler":"c".*result`))
		Eventually(annotation(ctx, obj, "results.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveLen(1))
		requireOthersHandled(ctx, ns, "results.example.org")
	})

	It("a patch that the API server rejects counts as a failed attempt", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("refused.example.org", settingsFor(ns))
		gadgets := kopf.ForResource(op, "e2e.example.org/v1", "gadgets")
		gadgets.MatchingLabels("bad").OnCreate("c", func(_ context.Context, c *unstructuredChange) error {
			seen.add("call")
			c.Patch(func(u *unstructuredObject) { u.Object["spec"].(map[string]any)["limited"] = int64(11) })
			return nil
		}, kopf.Retries(2), kopf.Backoff(time.Millisecond))
		gadgets.OnCreate("good", func(context.Context, *unstructuredChange) error { return nil })
		running := start(op)
		obj := gadget(ns, "refused", map[string]any{"size": int64(1)})
		obj.SetLabels(map[string]string{"bad": "yes"})
		create(ctx, obj)
		Eventually(running.logs).Should(
			gbytes.Say(`refused the changes of a handler.*"name":"refused".*"handler":"c".*limited`),
		)
		Eventually(annotation(ctx, obj, "refused.example.org"+lastHandledSuffix)).ShouldNot(BeNil())
		Expect(seen.list()).To(HaveLen(2))
		requireOthersHandled(ctx, ns, "refused.example.org")
	})
})
