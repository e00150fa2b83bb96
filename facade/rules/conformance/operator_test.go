package conformance_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// Widget is the kind of the table. Its spec accepts anything, so that every object reaches the rules.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec map[string]any `json:"spec"`
}

// DeepCopyObject returns a deep copy.
func (w *Widget) DeepCopyObject() runtime.Object {
	clone := &Widget{TypeMeta: w.TypeMeta, Spec: runtime.DeepCopyJSON(w.Spec)}
	w.ObjectMeta.DeepCopyInto(&clone.ObjectMeta)
	return clone
}

const operatorName = "rules.example.org"

// operate starts an operator with all rules, and configures its webhooks in the API server.
func (s *server) operate(t *testing.T) {
	t.Helper()
	local := envtest.WebhookInstallOptions{}
	if err := local.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Cleanup() })
	types := runtime.NewScheme()
	types.AddKnownTypes(schema.GroupVersion{Group: "rules.example.org", Version: "v1"}, &Widget{})
	manager, err := ctrl.NewManager(s.config, ctrl.Options{
		Scheme: types, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	op := kopf.New(operatorName)
	for _, all := range policies {
		for _, rule := range all {
			rules.Add(kopf.For(op, &Widget{}), rule)
		}
	}
	if err := op.SetupWithManager(manager); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the manager: %v", err)
		}
	})
	if err := s.api.Create(t.Context(), configuration(&local)); err != nil {
		t.Fatal(err)
	}
}

// configuration returns a webhook for each rule, for the objects of its policy.
func configuration(local *envtest.WebhookInstallOptions) *admissionregistrationv1.ValidatingWebhookConfiguration {
	made := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: operatorName}}
	for policy, all := range policies {
		for _, rule := range all {
			address := url.URL{
				Scheme: "https", Host: net.JoinHostPort(local.LocalServingHost, strconv.Itoa(local.LocalServingPort)),
				Path: operatorName + "/validate/" + rule.ID(),
			}
			hook := admissionregistrationv1.ValidatingWebhook{
				Name:                    strings.Join([]string{rule.ID(), operatorName}, "."),
				AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](30),
				SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					URL: ptr.To(address.String()), CABundle: local.LocalServingCAData,
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
					Rule:       widgets,
				}},
			}
			hook.ObjectSelector, hook.NamespaceSelector = selectors(policy, operatorNamespace)
			made.Webhooks = append(made.Webhooks, hook)
		}
	}
	return made
}
