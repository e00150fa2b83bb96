package e2e_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scraperToken creates a service account, which may get the non-resource URLs, and returns a token of it.
func scraperToken(ctx context.Context, ns, name string, urls ...string) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	Expect(api.Create(ctx, account)).To(Succeed())
	if len(urls) > 0 {
		role := ns + "-" + name
		Expect(api.Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: urls, Verbs: []string{"get"}}},
		})).To(Succeed())
		Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}},
		})).To(Succeed())
	}
	token := &authenticationv1.TokenRequest{}
	Expect(api.SubResource("token").Create(ctx, account, token)).To(Succeed())
	return token.Status.Token
}

var _ = Describe("Metrics with authentication", func() {
	It("are served to service accounts that may get them, under the generated permissions", func(ctx context.Context) {
		folder := filepath.Join("..", "..", "examples", "getting-started")
		install(filepath.Join(folder, "crd.yaml"))
		ns, address, account := namespace(ctx), freeAddress(), ""
		for _, object := range generated(ctx, folder, "-n", ns, "--operator-namespace", ns, "--only", "rbac",
			"--metrics-secure") {
			applied := client.ApplyConfigurationFromUnstructured(object)
			Expect(api.Apply(ctx, applied, client.FieldOwner("e2e"), client.ForceOwnership)).To(Succeed())
			if object.GetKind() == "ServiceAccount" {
				account = object.GetName()
			}
		}
		run(build(folder), []string{"KUBECONFIG=" + userOf(ctx, "system:serviceaccount:"+ns+":"+account, nil)},
			"-n", ns, "--metrics-bind-address", address, "--metrics-secure")

		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it is self-signed
		DeferCleanup(transport.CloseIdleConnections)
		var text string
		read := func(token string) (code int, err error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
			if err != nil {
				return 0, err
			}
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			answer, err := transport.RoundTrip(request)
			if err != nil {
				return 0, err
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			text = string(body)
			return answer.StatusCode, err
		}
		permitted, other := scraperToken(ctx, ns, "scraper", "/metrics"), scraperToken(ctx, ns, "other", "/other")
		Eventually(read).WithArguments(permitted).Should(Equal(http.StatusOK))
		Expect(text).To(ContainSubstring("kopf_paused"))
		Expect(text).NotTo(ContainSubstring(`rest_client_requests_total{code="403"`), "the permissions suffice")
		for token, want := range map[string]int{"": 401, "invalid": 401, other: 403} {
			code, err := read(token)
			Expect(err).NotTo(HaveOccurred())
			Expect(code).To(Equal(want))
		}
	})
})
