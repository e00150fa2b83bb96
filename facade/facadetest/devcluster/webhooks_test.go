package devcluster_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// webhookServer serves /label, which adds a label, and /deny, which denies the name "bad".
func webhookServer(t *testing.T) (url string, authority []byte) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		switch {
		case r.URL.Path == "/label":
			response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
			response.Patch = []byte(`[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`)
		case review.Request.Name == "bad":
			response.Allowed, response.Result = false, &metav1.Status{Message: "it is bad", Code: 422}
		}
		review.Response = response
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func rulesForConfigMaps() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
		},
	}}
}

func TestWebhooksByURL(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster)
	url, authority := webhookServer(t)
	none := ptr.To(admissionregistrationv1.SideEffectClassNone)
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(
		t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "label"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "label.example.org", Rules: rulesForConfigMaps(), SideEffects: none,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + "/label"),
					CABundle: authority},
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(
		t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "deny"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "deny.example.org", Rules: rulesForConfigMaps(), SideEffects: none,
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To(url + "/deny"),
					CABundle: authority},
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}, metav1.CreateOptions{})
	}
	if good, err := create("good"); err != nil || good.Labels["seen"] != "yes" {
		t.Errorf("the mutating webhook must add its label: %v, %v", good.Labels, err)
	}
	if _, err := create("bad"); err == nil || !strings.Contains(err.Error(),
		`"deny.example.org" denied the request: it is bad`) {
		t.Errorf("the validating webhook must deny the request: %v", err)
	}
}

func TestWebhookByService(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster)
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(
		t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "service"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "service.example.org", Rules: rulesForConfigMaps(),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "x"},
				},
				SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
	}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "set clientConfig.url") {
		t.Errorf("the error must suggest clientConfig.url, got %v", err)
	}
}
