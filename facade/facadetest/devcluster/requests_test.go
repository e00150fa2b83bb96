package devcluster_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// answeringWebhook serves one webhook with a function that changes the response.
func answeringWebhook(
	t *testing.T, answer func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse),
) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		answer(review.Request, review.Response)
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To(server.URL),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

func TestWebhooksSeeTheUser(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster)
	var mu sync.Mutex
	seen := map[types.UID]bool{}
	configure(t, client, validating(answeringWebhook(t, func(r *admissionv1.AdmissionRequest,
		_ *admissionv1.AdmissionResponse,
	) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.UID] = true
		if r.UserInfo.Username != "devcluster-admin" || !slices.Contains(r.UserInfo.Groups, "system:masters") {
			t.Errorf("the review must have the user of the client, got %v", r.UserInfo)
		}
	})))
	for _, name := range []string{"a", "b"} {
		if err := createConfigMap(t, client, name); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("two reviews must have two uids, got %v", seen)
	}
}

func TestAnswersForOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster)
	configure(t, client, validating(answeringWebhook(t, func(_ *admissionv1.AdmissionRequest,
		answer *admissionv1.AdmissionResponse,
	) {
		answer.UID = "other"
	})))
	requireError(t, "a response with another uid is refused", createConfigMap(t, client, "a"), "expected response.uid=")
}

// TestRequestsAreAnsweredAtTheEnd shows that running requests are answered while the cluster ends, and that watches
// end.
func TestRequestsAreAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	cluster, end := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster)
	events, err := client.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asked, watchEnded := make(chan struct{}), make(chan struct{})
	configure(t, client, validating(answeringWebhook(t, func(*admissionv1.AdmissionRequest,
		*admissionv1.AdmissionResponse,
	) {
		close(asked)
		<-watchEnded
	})))
	created := make(chan error, 1)
	go func() { created <- createConfigMap(t, client, "a") }()
	<-asked
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		end()
	}()
	for range events.ResultChan() {
		t.Log("an event before the end of the watch")
	}
	close(watchEnded)
	if err := <-created; err != nil {
		t.Errorf("the running request must be answered: %v", err)
	}
	<-ended
}

func TestOtherLoopbackAddresses(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{Address: "127.0.0.2:0"})
	_, err := clientOf(t, cluster).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Error(errors.Join(errors.New("the certificate must be valid for the address"), err))
	}
}
