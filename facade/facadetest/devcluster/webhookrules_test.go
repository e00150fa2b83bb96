package devcluster_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

func TestInvalidWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	url := admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/x")}
	cases := map[string]struct {
		reason string
		change func(*admissionregistrationv1.ValidatingWebhook)
		want   string
	}{
		"Valid": {"it is valid", func(*admissionregistrationv1.ValidatingWebhook) {}, ""},
		"Name": {"names have a domain", func(h *admissionregistrationv1.ValidatingWebhook) { h.Name = "hook" },
			"should be a domain with at least three segments separated by dots"},
		"NoVersions": {"versions are required", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.AdmissionReviewVersions = nil
		}, "webhooks[0].admissionReviewVersions: Required value"},
		"NoSideEffects": {"the class is required", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.SideEffects = nil
		}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"},
		"SideEffects": {"dry runs must not have side effects", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassSome)
		}, `webhooks[0].sideEffects: Unsupported value: "Some"`},
		"NoClient": {"it must be somewhere", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig = admissionregistrationv1.WebhookClientConfig{}
		}, "exactly one of url or service is required"},
		"NotSecure": {"webhooks are served by TLS", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig.URL = ptr.To("http://127.0.0.1:1/x")
		}, "'https' is the only allowed URL scheme"},
		"Condition": {"conditions must compile", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: "objects.x"}}
		}, "webhooks[0].matchConditions[0].expression: Invalid value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hook := validating(url)
			tc.change(&hook)
			_, err := client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "hooks-"},
				Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
			}, metav1.CreateOptions{})
			requireError(t, tc.reason, err, tc.want)
		})
	}
}
