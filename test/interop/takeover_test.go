package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const lastHandled = "kopf.zalando.org/last-handled-configuration"

// cluster is the objects of one spec.
type cluster struct{ namespace string }

func (c cluster) create(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		var labels map[string]any
		if name == "half" {
			labels = map[string]any{"retried": "yes"}
		}
		Expect(api.Create(ctx, example(c.namespace, name, labels))).To(Succeed())
	}
}

// object is nil if it is no more.
func (c cluster) object(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kopf.dev/v1")
	object.SetKind("KopfExample")
	err := api.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

func (c cluster) isGone(ctx context.Context, name string) func() (bool, error) {
	return func() (bool, error) {
		object, err := c.object(ctx, name)
		return object == nil && err == nil, err
	}
}

func (c cluster) edit(ctx context.Context, name, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec":{"field":%q}}`, value)
	object := example(c.namespace, name, nil)
	Expect(api.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// handled waits until the object was handled with the value and no handler has work left.
func (c cluster) handled(ctx context.Context, name, value string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		object, err := c.object(ctx, name)
		if err != nil || object == nil {
			return "", err
		}
		if object.GetAnnotations()["kopf.zalando.org/retried_fn"] != "" {
			return "unfinished", nil
		}
		var remembered struct{ Spec struct{ Field string } }
		_ = json.Unmarshal([]byte(object.GetAnnotations()[lastHandled]), &remembered)
		return remembered.Spec.Field, nil
	}).Should(Equal(value), name)
}

// snapshot is all of an object that must not change: its version says so, and the rest says what did.
func (c cluster) snapshot(ctx context.Context, name string) map[string]any {
	GinkgoHelper()
	object, err := c.object(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(object).NotTo(BeNil())
	return object.Object
}

// withoutTimes is a call without its time.
func withoutTimes(calls []call) []string {
	var all []string
	for _, one := range calls {
		text, _ := json.Marshal(one.Diff)
		if one.Reason == "create" || one.Reason == "delete" {
			text = nil
		}
		all = append(all, fmt.Sprintf("%s %s %s retry=%d %s", one.Name, one.ID, one.Reason, one.Retry, text))
	}
	slices.Sort(all)
	return all
}

var _ = Describe("Objects", func() {
	DescribeTable("are handed over", func(ctx context.Context, first, second, third operator) {
		c := cluster{"interop-" + fmt.Sprint(GinkgoRandomSeed()) + "-" + fmt.Sprint(time.Now().UnixNano())}
		Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})).To(Succeed())

		By("letting the first one handle them, and stop in the middle of one")
		first.start(c.namespace)
		c.create(ctx, "quiet", "edited", "doomed", "half")
		for _, name := range []string{"quiet", "edited", "doomed"} {
			c.handled(ctx, name, "a")
		}
		record := func() (map[string]any, error) {
			object, err := c.object(ctx, "half")
			decoded := map[string]any{}
			if err == nil {
				_ = json.Unmarshal([]byte(object.GetAnnotations()["kopf.zalando.org/retried_fn"]), &decoded)
			}
			return decoded, err
		}
		Eventually(record).Should(HaveKeyWithValue("retries", BeEquivalentTo(1)))
		first.stop()
		Expect(withoutTimes(first.calls())).To(
			ContainElements(
				"quiet create_fn create retry=0 ", "half retried_fn create retry=0 ", "half create_fn create retry=0 ",
			),
		)
		decoded, err := record()
		Expect(err).NotTo(HaveOccurred())
		due, err := time.Parse(time.RFC3339Nano, fmt.Sprint(decoded["delayed"]))
		Expect(err).NotTo(HaveOccurred())
		before := c.snapshot(ctx, "quiet")

		By("changing some objects between the operators, and starting the second one")
		c.edit(ctx, "edited", "b")
		Expect(api.Delete(ctx, example(c.namespace, "doomed", nil))).To(Succeed())
		second.start(c.namespace)
		c.handled(ctx, "edited", "b")
		c.handled(ctx, "half", "a")
		Eventually(c.isGone(ctx, "doomed")).Should(BeTrue())
		c.create(ctx, "later") // this object is handled after all others
		c.handled(ctx, "later", "a")
		second.stop()
		Expect(withoutTimes(second.calls())).To(Equal([]string{
			"doomed delete_fn delete retry=0 ",
			`edited field_fn/spec.field update retry=0 [["change",[],"a","b"]]`,
			`edited update_fn update retry=0 [["change",["spec","field"],"a","b"]]`,
			"half retried_fn create retry=1 ",
			"later create_fn create retry=0 ", "later field_fn/spec.field create retry=0 ",
		}))
		for _, one := range second.calls() {
			if one.ID == "retried_fn" {
				Expect(one.At).To(BeNumerically(">=", float64(due.UnixMicro())/1e6), "not before it is due")
			}
		}
		Expect(c.snapshot(ctx, "quiet")).To(
			Equal(before), "nothing is written to an object of which nothing is to be done",
		)

		By("handing them back")
		c.edit(ctx, "edited", "c")
		third.start(c.namespace)
		c.handled(ctx, "edited", "c")
		c.create(ctx, "last")
		c.handled(ctx, "last", "a")
		Expect(withoutTimes(third.calls())).To(Equal([]string{
			`edited field_fn/spec.field update retry=0 [["change",[],"b","c"]]`,
			`edited update_fn update retry=0 [["change",["spec","field"],"b","c"]]`,
			"last create_fn create retry=0 ", "last field_fn/spec.field create retry=0 ",
		}))
		Expect(c.snapshot(ctx, "quiet")).To(Equal(before))
		for _, name := range []string{"quiet", "edited", "half", "later", "last"} {
			Expect(c.snapshot(ctx, name)["status"]).To(
				HaveKeyWithValue("create_fn", HaveKeyWithValue("by", "anybody")), name,
			)
			Expect(api.Delete(ctx, example(c.namespace, name, nil))).To(Succeed())
			Eventually(c.isGone(ctx, name)).Should(BeTrue())
		}
		third.stop()
	},
		Entry("from Kopf to ours, typed, and back", &pythonKopf{}, &goOperator{isTyped: true}, &pythonKopf{}),
		Entry("from Kopf to ours, dynamic, and back", &pythonKopf{}, &goOperator{}, &pythonKopf{}),
		Entry("from ours, dynamic, to Kopf, and back", &goOperator{}, &pythonKopf{}, &goOperator{}),
		Entry("from ours, typed, to Kopf, and back", &goOperator{isTyped: true}, &pythonKopf{},
			&goOperator{isTyped: true}),
	)
})
