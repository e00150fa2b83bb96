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
		"Valid": {"a valid webhook is accepted", func(*admissionregistrationv1.ValidatingWebhook) {}, ""},
		"Name": {"a name without a domain is refused",
			func(h *admissionregistrationv1.ValidatingWebhook) { h.Name = "hook" },
			"should be a domain with at least three segments separated by dots"},
		"NoVersions": {"a webhook without review versions is refused",
			func(h *admissionregistrationv1.ValidatingWebhook) {
				h.AdmissionReviewVersions = nil
			}, "webhooks[0].admissionReviewVersions: Required value"},
		"NoSideEffects": {"a webhook without sideEffects is refused",
			func(h *admissionregistrationv1.ValidatingWebhook) {
				h.SideEffects = nil
			}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"},
		"SideEffects": {"side effects of dry runs are refused", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassSome)
		}, `webhooks[0].sideEffects: Unsupported value: "Some"`},
		"NoClient": {"a webhook without a URL and a service is refused",
			func(h *admissionregistrationv1.ValidatingWebhook) {
				h.ClientConfig = admissionregistrationv1.WebhookClientConfig{}
			}, "exactly one of url or service is required"},
		"NotSecure": {"a webhook without TLS is refused", func(h *admissionregistrationv1.ValidatingWebhook) {
			h.ClientConfig.URL = ptr.To("http://127.0.0.1:1/x")
		}, "'https' is the only allowed URL scheme"},
		"Condition": {"a condition that does not compile is refused",
			func(h *admissionregistrationv1.ValidatingWebhook) {
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
