package e2e_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// denialOf returns the code and the message of an API error, or zero for a nil error.
func denialOf(err error) (code int32, message string) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &status):
		return status.Status().Code, status.Status().Message
	default:
		return -1, err.Error()
	}
}

// answer returns the expected code and message of a denial by the handler with this id.
func answer(code int32, id, message string) []any {
	return []any{code, `admission webhook "` + id + `.admission.example.org" denied the request: ` + message}
}

var _ = Describe("Operators with admission of every kind of request", Ordered, func() {
	var (
		place, address string
		endpoint       *countedServer
		dryRuns        *calls
		stop           func()
	)
	labelled := func(name string, spec map[string]any) *unstructuredObject {
		obj := widget(place, name, spec)
		obj.SetLabels(map[string]string{namespaceLabel: place})
		return obj
	}
	asked := func(kind string) int { return endpoint.of("/admission.example.org/" + kind) }
	attempt := func(err error) []any { code, message := denialOf(err); return []any{code, message} }

	BeforeAll(func(ctx SpecContext) {
		place, address, dryRuns = namespace(ctx), freeAddress(), &calls{}
		endpoint = newCountedServer(address)
		stop = serve(admissionOperator(place, address, dryRuns), endpoint)
		Eventually(func() []any {
			return attempt(api.Create(ctx, labelled("first", map[string]any{"size": int64(11)}), client.DryRunAll))
		}).WithContext(ctx).Should(Equal(answer(413, "size", "11 is too large for anonymous")),
			"the validating handler gets the object as mutated")
	}, NodeTimeout(waitTimeout))

	It("allow objects with changes made in place and by Patch, and keep unknown fields", func(
		ctx SpecContext,
	) {
		obj := labelled("changed", map[string]any{
			"size": int64(1), "tags": []any{"mine"}, "unknown": map[string]any{"to": "the type"},
		})
		create(ctx, obj)
		Expect(field(ctx, obj, "spec")()).To(Equal(map[string]any{
			"size": int64(1), "owner": "anonymous", "tags": []any{"mine", "patched"},
			"unknown": map[string]any{"to": "the type"},
		}))
		merge(ctx, obj, `{"spec":{"owner":null,"size":2,"tags":[]}}`)
		Expect(field(ctx, obj, "spec")()).To(Equal(map[string]any{
			"size": int64(2), "owner": "anonymous", "tags": []any{"patched"},
			"unknown": map[string]any{"to": "the type"},
		}))

		By("denying an update with the code of an API error")
		obj.Object["spec"] = map[string]any{"size": int64(1)}
		obj.SetResourceVersion("")
		Expect(attempt(api.Patch(ctx, obj, client.Merge))).To(Equal(answer(
			409, "size", `Operation cannot be fulfilled on widgets "changed": it shrinks`,
		)))
	}, SpecTimeout(waitTimeout))

	It("deny a deletion until the handler allows it", func(ctx SpecContext) {
		obj := labelled("kept", map[string]any{"size": int64(1), "tags": []any{"kept"}})
		create(ctx, obj)
		Expect(attempt(api.Delete(ctx, obj))).To(Equal(answer(423, "deletion", "kept is kept, admin")))
		merge(ctx, obj, `{"spec":{"tags":[]}}`)
		remove(ctx, obj)
	}, SpecTimeout(waitTimeout))

	It("deny a status change without calling the handlers of the main resource", func(ctx SpecContext) {
		obj := labelled("failed", map[string]any{"size": int64(1)})
		create(ctx, obj)
		before := asked("validate/size")
		// The operator's own user can change the status without calling its handlers, so this client is another user.
		other := rest.CopyConfig(config)
		other.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters"}}
		jane, err := client.New(other, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		phase := func(phase string) error {
			obj.Object["status"] = map[string]any{"phase": phase}
			return jane.Status().Update(ctx, obj)
		}
		Expect(phase("Failed")).To(Succeed())
		Expect(attempt(phase("Ready"))).To(Equal(answer(500, "phase", "a failed widget cannot become ready")))
		Expect(field(ctx, obj, "status", "phase")()).To(Equal("Failed"))
		Expect(asked("validate/size")).To(Equal(before))
	}, SpecTimeout(waitTimeout))

	It("limit the replicas in the scale subresource", func(ctx SpecContext) {
		meta := metav1.ObjectMeta{Namespace: place, Name: "scaled", Labels: map[string]string{"app": "a"}}
		deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		}}
		Expect(api.Create(ctx, deployment)).To(Succeed())
		scale := func(replicas int32) error {
			wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
			return api.SubResource("scale").Update(ctx, deployment.DeepCopy(), client.WithSubResourceBody(wanted))
		}
		Expect(attempt(scale(4))).To(Equal(answer(403, "replicas", "4 replicas of scaled are too many")))
		Expect(scale(3)).To(Succeed())
	}, SpecTimeout(waitTimeout))

	It("deny commands in the exec subresource of pods", func(ctx SpecContext) {
		clients, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		execute := func(command string) error {
			return clients.CoreV1().RESTClient().Post().Namespace(place).Resource("pods").Name("none").
				SubResource("exec").VersionedParams(&corev1.PodExecOptions{
				Command: []string{command}, Stdout: true,
			}, scheme.ParameterCodec).Do(ctx).Error()
		}
		Expect(attempt(execute("rm"))).To(Equal(answer(403, "commands", `CONNECT of ["rm"] in none: never`)))
		Expect(apierrors.IsNotFound(execute("ls"))).To(BeTrue(),
			"an allowed command reaches the API server, which does not find the pod")
	}, SpecTimeout(waitTimeout))

	It("send warnings to the client", func(ctx SpecContext) {
		from := len(apiWarnings.list())
		create(ctx, labelled("large", map[string]any{"size": int64(6)}))
		Expect(apiWarnings.list()[from:]).To(Equal([]string{"Warning: 6 is large"}))
	}, SpecTimeout(waitTimeout))

	It("report dry runs to handlers and store nothing", func(ctx SpecContext) {
		obj := labelled("dry", map[string]any{"size": int64(1)})
		Expect(api.Create(ctx, obj, client.DryRunAll)).To(Succeed())
		Expect(obj.Object["spec"]).To(HaveKeyWithValue("owner", "anonymous"))
		Expect(dryRuns.list()).To(ContainElement("CREATE dry"))
		Expect(now(ctx, obj)()).To(BeNil())
		Expect(dryRuns.list()).NotTo(ContainElement("CREATE large"))
	}, SpecTimeout(waitTimeout))

	It("get no reviews of objects without the label", func(ctx SpecContext) {
		kinds := []string{"validate/size", "validate/deletion", "validate/phase", "mutate/owner", "mutate/tags"}
		count := func() (all []int) {
			for _, kind := range kinds {
				all = append(all, asked(kind))
			}
			return all
		}
		// The API server computes a patch from its cached object, and reviews it again if the cache was stale.
		settle := func(obj *unstructuredObject) {
			latest, seen, key := obj.DeepCopy(), obj.DeepCopy(), client.ObjectKeyFromObject(obj)
			Expect(api.Get(ctx, key, latest)).To(Succeed())
			Eventually(func() (string, error) {
				err := api.Get(ctx, key, seen, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
				return seen.GetResourceVersion(), err
			}).WithContext(ctx).Should(Equal(latest.GetResourceVersion()))
		}
		pass := func(obj *unstructuredObject) {
			create(ctx, obj)
			settle(obj)
			merge(ctx, obj, `{"spec":{"size":3}}`)
			settle(obj)
			obj.Object["status"] = map[string]any{"phase": "Ready"}
			obj.SetResourceVersion("")
			Expect(api.Status().Patch(ctx, obj, client.Merge)).To(Succeed())
			settle(obj)
			remove(ctx, obj)
		}
		before := count()
		pass(widget(place, "unlabelled", map[string]any{"size": int64(2)}))
		Expect(count()).To(Equal(before))

		By("reviewing a labelled object once per handler")
		pass(labelled("labelled", map[string]any{"size": int64(2)}))
		for i, more := range []int{2, 1, 1, 2, 2} {
			before[i] += more
		}
		Expect(count()).To(Equal(before))
	}, SpecTimeout(waitTimeout))

	It("remove their webhook entries when they stop", func(ctx SpecContext) {
		stop()
		Eventually(func() error {
			return api.Create(ctx, labelled("last", map[string]any{"size": int64(11)}), client.DryRunAll)
		}).WithContext(ctx).Should(Succeed())
	}, SpecTimeout(waitTimeout))
})
