package devcluster_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

// TestObjectsCalledProxy shows that the path of a proxy is not served, and that an object or a namespace may have that
// name.
func TestObjectsCalledProxy(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster).CoreV1()
	if _, err := client.Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "proxy"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "proxy"} {
		if _, err := client.Services(namespace).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "proxy"},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Services(namespace).Get(t.Context(), "proxy", metav1.GetOptions{}); err != nil {
			t.Errorf("the service proxy in the namespace %s must be readable: %v", namespace, err)
		}
		err := client.RESTClient().Get().AbsPath("/api/v1/namespaces/" + namespace + "/services/proxy/proxy/a/b").
			Do(t.Context()).Error()
		if status := apierrors.APIStatus(nil); !asStatus(err, &status) ||
			status.Status().Code != http.StatusNotImplemented {
			t.Errorf("the proxy of a service in %s: got %v, want the code 501", namespace, err)
		}
	}
}

func asStatus(err error, into *apierrors.APIStatus) bool {
	status, ok := err.(apierrors.APIStatus)
	*into = status
	return ok
}

// TestBadTypesOfBuiltInKinds shows that an object that Go clients cannot read is refused.
func TestBadTypesOfBuiltInKinds(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster).CoreV1().ConfigMaps("default")
	if _, err := client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := client.Patch(
		t.Context(),
		"a",
		types.MergePatchType,
		[]byte(`{"data":{"port":8080}}`),
		metav1.PatchOptions{},
	)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("a number in the data of a ConfigMap: got %v, want a bad request", err)
	}
}

// TestReplacedNamespace shows that a namespace keeps its finalizer if a client replaces it without its spec.
func TestReplacedNamespace(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	client := clientOf(t, cluster).CoreV1()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
	if _, err := client.Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	replaced, err := client.Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{})
	if err != nil || len(replaced.Spec.Finalizers) != 1 {
		t.Errorf("a replaced namespace must keep its finalizer, got %v (%v)", replaced.Spec.Finalizers, err)
	}
}

func TestTokenLifetimes(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	accounts := clientOf(t, cluster).CoreV1().ServiceAccounts("default")
	cases := map[string]struct {
		reason           string
		requestedSeconds *int64
		want             int64
		wantInvalid      bool
	}{
		"Default":  {"a token lasts an hour by default", nil, 3600, false},
		"Day":      {"a client can request a longer lifetime", ptr.To[int64](86400), 86400, false},
		"TooShort": {"a lifetime below ten minutes is invalid", ptr.To[int64](-1), 0, true},
		"TooLong":  {"a lifetime above 2^32 seconds is invalid", ptr.To[int64](1<<32 + 1), 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			token, err := accounts.CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: tc.requestedSeconds},
			}, metav1.CreateOptions{})
			if tc.wantInvalid != apierrors.IsInvalid(err) || err == nil && *token.Spec.ExpirationSeconds != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, token.Spec, err)
			}
		})
	}
}

// TestLoadManifests shows that the objects of manifests are created as by a client: with defaults, and with validation.
func TestLoadManifests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	manifest := `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
stringData: {password: secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: other}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}
`
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, _ := startCluster(t, devcluster.Options{Load: []string{path}})
	client := clientOf(t, cluster)
	secret, err := client.CoreV1().Secrets("shop").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(secret.Data["password"]) != "secret" {
		t.Errorf("the stringData of the Secret must become data: got %q, %v", secret.Data, err)
	}
	deployment, err := client.AppsV1().Deployments("other").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != 1 {
		t.Errorf("the Deployment must get one replica by default: got %v, %v", deployment.Spec.Replicas, err)
	}
	for _, namespace := range []string{"shop", "other"} {
		if _, err := client.CoreV1().ServiceAccounts(namespace).Get(
			t.Context(), "default", metav1.GetOptions{},
		); err != nil {
			t.Errorf("the namespace %s must have a service account: %v", namespace, err)
		}
	}
}

// TestSaveAgain shows that another save of a loaded dump keeps the digests of Secrets, and that annotations are
// removed.
func TestSaveAgain(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	first, end := startCluster(t, devcluster.Options{Save: dump})
	if _, err := clientOf(t, first).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"note": "the password is top-secret"}},
		StringData: map[string]string{"password": "top-secret"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	end()
	second, end := startCluster(t, devcluster.Options{Load: []string{dump}, Save: dump})
	before, err := clientOf(t, second).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || !strings.HasPrefix(string(before.Data["password"]), "digest:") || len(before.Annotations) > 0 {
		t.Fatalf(
			"got %q with the annotations %v (%v), want a digest and no annotation",
			before.Data,
			before.Annotations,
			err,
		)
	}
	end()
	third, _ := startCluster(t, devcluster.Options{Load: []string{dump}})
	after, err := clientOf(t, third).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil || string(after.Data["password"]) != string(before.Data["password"]) {
		t.Errorf("the data of the Secret is %q (%v), want the same digest as after the first load: %q",
			after.Data, err, before.Data)
	}
}

// TestOpenAPIIsCached shows that OpenAPI documents have an ETag, which kubectl uses for its cache.
func TestOpenAPIIsCached(t *testing.T) {
	t.Parallel()
	cluster, _ := startCluster(t, devcluster.Options{})
	config := cluster.Config()
	ask := func(etag string) (code int, newEtag string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/openapi/v3/apis/apps/v1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+config.BearerToken)
		r.Header.Set("If-None-Match", etag)
		response, err := plainClient(t, config).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode, response.Header.Get("Etag")
	}
	first, etag := ask("")
	if second, _ := ask(etag); first != http.StatusOK || second != http.StatusNotModified {
		t.Errorf("two requests for the same document: got the codes %d and %d, want 200 and 304", first, second)
	}
}
