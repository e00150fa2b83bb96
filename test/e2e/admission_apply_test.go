package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// applyingOperator is the field manager of the webhook entries and the suffix of their names.
const applyingOperator = "applying.example.org"

// killer simulates a process that dies at a given request: before the API server receives it, or before the process
// receives the response.
type killer struct {
	next          http.RoundTripper
	remaining     atomic.Int64
	afterResponse bool
	isDead        atomic.Bool
}

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	isLast := k.remaining.Add(-1) == 0
	if isLast && !k.afterResponse {
		k.isDead.Store(true)
	}
	if k.isDead.Load() {
		return nil, errors.New("the process is dead")
	}
	response, err := k.next.RoundTrip(r)
	if isLast {
		k.isDead.Store(true)
	}
	if err == nil && k.isDead.Load() {
		_ = response.Body.Close()
		return nil, errors.New("the process is dead")
	}
	return response, err
}

// entriesWriter is a process that maintains webhook entries in a configuration.
type entriesWriter struct {
	killer *killer
	cancel context.CancelFunc
	done   chan struct{}
}

// startWriter starts a process that serves the hooks. A higher number means a younger process. The killer ends it at
// one of its requests; a zero counter never kills it.
func startWriter(name string, number int64, k *killer, hooks ...configurations.Hook) *entriesWriter {
	GinkgoHelper()
	connected := rest.CopyConfig(config)
	connected.Wrap(func(next http.RoundTripper) http.RoundTripper { k.next = next; return k })
	made, err := configurations.NewClient(connected, nil)
	Expect(err).NotTo(HaveOccurred())
	writer := configurations.NewWriter(configurations.Options{
		Client: made, Name: name, Operator: applyingOperator, Identity: fmt.Sprint("process-", number),
		StartTime: time.Unix(number, 0), HandOver: time.Second, Form: configurations.Form{Suffix: applyingOperator},
	})
	ctx, end := context.WithCancel(context.Background())
	p := &entriesWriter{killer: k, cancel: end, done: make(chan struct{})}
	go func() {
		defer GinkgoRecover()
		defer close(p.done)
		Expect(writer.Run(ctx)).To(Succeed())
	}()
	writer.SetHooks(hooks)
	writer.SetClientConfig(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://applying.invalid")})
	return p
}

func (p *entriesWriter) stop() {
	p.cancel()
	<-p.done
}

// configuration returns the validating webhook configuration, or an empty one if it does not exist.
func configuration(ctx context.Context, name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	object := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreNotFound(api.Get(ctx, client.ObjectKeyFromObject(object), object))).To(Succeed())
	return object
}

// entryNames returns the names of the entries without the operator's suffix.
func entryNames(ctx context.Context, name string) func() []string {
	return func() (names []string) {
		for _, one := range configuration(ctx, name).Webhooks {
			names = append(names, strings.TrimSuffix(one.Name, "."+applyingOperator))
		}
		return names
	}
}

// ownOperations returns the operations with which the operator is recorded as a field manager.
func ownOperations(ctx context.Context, name string) (all []metav1.ManagedFieldsOperationType) {
	for _, one := range configuration(ctx, name).ManagedFields {
		if one.Manager == applyingOperator {
			all = append(all, one.Operation)
		}
	}
	return all
}

// changeConfiguration updates the validating webhook configuration as another client.
func changeConfiguration(
	ctx context.Context, name, manager string, change func(*admissionregistrationv1.ValidatingWebhookConfiguration),
) {
	GinkgoHelper()
	Eventually(func() error {
		object := configuration(ctx, name)
		change(object)
		if object.ResourceVersion == "" {
			return api.Create(ctx, object, client.FieldOwner(manager))
		}
		return api.Update(ctx, object, client.FieldOwner(manager))
	}).Should(Succeed())
}

// injectCABundle sets the CA bundle of all entries, like a CA injector.
func injectCABundle(of *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for i := range of.Webhooks {
		of.Webhooks[i].ClientConfig.CABundle = config.CAData
	}
}

// validatingEntry returns an entry with a URL whose empty rules match no request.
func validatingEntry(name, url string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// markOf returns the annotation value that a process of a former release writes.
func markOf(writer string, number int64, entries ...string) string {
	GinkgoHelper()
	text, err := json.Marshal(map[string]any{"writer": writer, "started": time.Unix(number, 0), "entries": entries})
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// writeAsFormer replaces the operator's entries like a release that predates server-side apply.
func writeAsFormer(ctx context.Context, name, mark string, entries ...admissionregistrationv1.ValidatingWebhook) {
	GinkgoHelper()
	changeConfiguration(ctx, name, applyingOperator,
		func(object *admissionregistrationv1.ValidatingWebhookConfiguration) {
			object.Webhooks = slices.DeleteFunc(object.Webhooks,
				func(one admissionregistrationv1.ValidatingWebhook) bool {
					return strings.HasSuffix(one.Name, "."+applyingOperator)
				})
			object.Webhooks = append(object.Webhooks, entries...)
			if object.Annotations == nil {
				object.Annotations = map[string]string{}
			}
			object.Annotations[applyingOperator+"/certificates"] = "digest"
			if object.Annotations[applyingOperator+"/webhooks"] = mark; mark == "" {
				delete(object.Annotations, applyingOperator+"/webhooks")
			}
		})
}

var _ = Describe("The entries of an operator with admission", func() {
	var name string
	size, persistent := configurations.Hook{ID: "size"}, configurations.Hook{ID: "lasting", Persistent: true}
	BeforeEach(func(ctx SpecContext) {
		name = "applied-" + namespace(ctx)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(api.Delete(ctx, configuration(ctx, name)))).To(Succeed())
		})
		changeConfiguration(ctx, name, "theirs",
			func(object *admissionregistrationv1.ValidatingWebhookConfiguration) {
				object.Webhooks = []admissionregistrationv1.ValidatingWebhook{
					validatingEntry("their.own.entry", "https://theirs.invalid"),
				}
			})
		changeConfiguration(ctx, name, "injector", injectCABundle)
	})

	It("are one for each handler, wherever processes are killed", func(ctx SpecContext) {
		const kills = 50
		theirs := configuration(ctx, name).Webhooks[0]
		for i := range int64(kills) {
			k := &killer{afterResponse: i%2 == 1}
			k.remaining.Store(i/2%8 + 1)
			hooks := []configurations.Hook{size, persistent, {ID: fmt.Sprint("only-", i)}}
			p := startWriter(name, i, k, hooks[:1+i%3]...)
			written := fmt.Sprintf(`"process-%d"`, i)
			Eventually(func() bool {
				mark := configuration(ctx, name).Annotations[applyingOperator+"/webhooks"]
				return k.isDead.Load() || strings.Contains(mark, written)
			}).Should(BeTrue())
			k.isDead.Store(true)
			p.stop()
		}
		before := startWriter(name, kills, &killer{}, size, persistent)
		Eventually(entryNames(ctx, name)).Should(Equal([]string{"their.own.entry", "size", "lasting"}))
		changeConfiguration(ctx, name, "injector", injectCABundle)
		after := startWriter(name, kills+1, &killer{}, size)
		Eventually(entryNames(ctx, name)).Should(Equal([]string{"their.own.entry", "size"}))
		before.stop()
		Expect(entryNames(ctx, name)()).To(Equal([]string{"their.own.entry", "size"}))
		Expect(ownOperations(ctx, name)).To(Equal(
			[]metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply}))
		Expect(configuration(ctx, name).Webhooks[0]).To(Equal(theirs))
		Expect(configuration(ctx, name).Webhooks[1].ClientConfig.CABundle).To(Equal(config.CAData))
		after.stop()
		Expect(entryNames(ctx, name)()).To(Equal([]string{"their.own.entry"}))
		Expect(configuration(ctx, name).Annotations).To(BeEmpty())
	}, SpecTimeout(waitTimeout))

	It("are taken over from releases that update the object, and given back", func(ctx SpecContext) {
		former := validatingEntry("size."+applyingOperator, "https://former.invalid/size")
		former.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "former", Expression: "true"}}
		stale := validatingEntry("stale."+applyingOperator, "https://former.invalid/stale")
		for i := int64(1); i < 6; i += 2 {
			writeAsFormer(ctx, name, markOf("former", i, former.Name, stale.Name), former, stale)
			changeConfiguration(ctx, name, "injector", injectCABundle)
			upgraded := startWriter(name, i+1, &killer{}, size)
			Eventually(entryNames(ctx, name)).Should(Equal([]string{"their.own.entry", "size"}))
			got := configuration(ctx, name).Webhooks[1]
			Expect(*got.ClientConfig.URL).To(Equal("https://applying.invalid/size"))
			Expect(got.ClientConfig.CABundle).To(Equal(config.CAData))
			Expect(got.MatchConditions).To(BeEmpty())
			Expect(len(ownOperations(ctx, name))).To(BeNumerically("<=", 2))

			By("rolling back")
			writeAsFormer(ctx, name, markOf("back", i+2, former.Name), former)
			upgraded.stop()
			got = configuration(ctx, name).Webhooks[1]
			Expect(*got.ClientConfig.URL).To(Equal("https://former.invalid/size"))
			Expect(got.MatchConditions).To(HaveLen(1))
			writeAsFormer(ctx, name, "")
			Expect(entryNames(ctx, name)()).To(Equal([]string{"their.own.entry"}))
		}
		Expect(configuration(ctx, name).Annotations).To(HaveKeyWithValue(applyingOperator+"/certificates", "digest"))
	}, SpecTimeout(waitTimeout))

	It("are removed although other clients have applied fields in them", func(ctx SpecContext) {
		printed := validatingEntry("size."+applyingOperator, "https://printed.invalid/size")
		printed.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		changeConfiguration(ctx, name, "kubectl",
			func(object *admissionregistrationv1.ValidatingWebhookConfiguration) {
				object.Webhooks = append(object.Webhooks, printed)
			})
		p := startWriter(name, 1, &killer{}, size)
		Eventually(func() string {
			return *configuration(ctx, name).Webhooks[1].ClientConfig.URL
		}).Should(Equal("https://applying.invalid/size"))
		Expect(configuration(ctx, name).Webhooks[1].ObjectSelector.MatchLabels).To(BeEmpty())
		injected := raw("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", name, nil)
		delete(injected.Object, "spec")
		injected.Object["webhooks"] = []any{map[string]any{
			"name":         printed.Name,
			"clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(config.CAData)},
		}}
		Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(injected), client.FieldOwner("injector"),
			client.ForceOwnership)).To(Succeed())
		version := configuration(ctx, name).ResourceVersion
		current := func() string { return configuration(ctx, name).ResourceVersion }
		Consistently(current, time.Second).Should(Equal(version),
			"the operator and the injector do not overwrite each other")
		Expect(configuration(ctx, name).Webhooks[1].ClientConfig.CABundle).To(Equal(config.CAData))
		p.stop()
		Expect(entryNames(ctx, name)()).To(Equal([]string{"their.own.entry"}))
	}, SpecTimeout(waitTimeout))
})
