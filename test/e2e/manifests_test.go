package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// generated returns the objects that an example prints by the command manifests.
func generated(ctx context.Context, folder string, args ...string) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, build(folder), append([]string{
		"manifests", "--crds", filepath.Join(folder, "crd.yaml"), "--kubeconfig", "/nowhere",
	}, args...)...)
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred())
	if len(out) == 0 {
		return nil
	}
	return documents(string(out))
}

// documents returns the objects of a manifest.
func documents(text string) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.UnmarshalStrict([]byte(document), &object.Object)).To(Succeed())
		all = append(all, object)
	}
	return all
}

// forbiddenRequests matches the counter of refused requests in the metrics of a program.
var forbiddenRequests = regexp.MustCompile(`(?m)^rest_client_requests_total\{code="403".*\} (\d+)$`)

// countForbidden returns how many requests of a program the API server has refused.
func countForbidden(address string) (count int, err error) {
	response, err := http.Get("http://" + address + "/metrics") //nolint:noctx // it is local
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(text), `rest_client_requests_total{code="20`) {
		return 0, fmt.Errorf("the metrics have no requests: %w", err)
	}
	for _, found := range forbiddenRequests.FindAllSubmatch(text, -1) {
		number, _ := strconv.Atoi(string(found[1]))
		count += number
	}
	return count, nil
}

var _ = Describe("The command manifests", func() {
	for example, omitted := range map[string]string{"getting-started": "configmaps", "database": "databases/status"} {
		folder := filepath.Join("..", "..", "examples", example)
		It("grants "+example+" what it needs, and nothing else", func(ctx context.Context) {
			install(filepath.Join(folder, "crd.yaml"))
			ns, address, forbidden := namespace(ctx), freeAddress(), 0
			var account string
			var role *unstructured.Unstructured
			for _, object := range generated(ctx, folder, "-n", ns, "--operator-namespace", ns, "--only", "rbac") {
				// Other specs apply a ClusterRole of this name, too.
				applied := client.ApplyConfigurationFromUnstructured(object)
				Expect(api.Apply(ctx, applied, client.FieldOwner("e2e"), client.ForceOwnership)).To(Succeed())
				switch object.GetKind() {
				case "ServiceAccount":
					account = object.GetName()
				case "Role":
					role = object
				}
			}
			r := exampleRun{
				folder: folder, namespace: ns,
				env:  []string{"KUBECONFIG=" + userOf(ctx, "system:serviceaccount:"+ns+":"+account, nil)},
				args: []string{"-n", ns, "--metrics-bind-address", address},
				beforeExit: func() {
					count, err := countForbidden(address)
					Expect(err).NotTo(HaveOccurred())
					forbidden += count
				},
			}
			r.play(ctx, steps(filepath.Join(folder, "expected.txt")))
			Expect(forbidden).To(BeZero(), "the permissions suffice for everything that the example does")

			var reduced rbacv1.Role
			Expect(api.Get(ctx, client.ObjectKeyFromObject(role), &reduced)).To(Succeed())
			for i, rule := range reduced.Rules {
				if strings.Join(rule.Resources, " ") == omitted {
					reduced.Rules = append(reduced.Rules[:i], reduced.Rules[i+1:]...)
					break
				}
			}
			Expect(reduced.Rules).NotTo(BeEmpty())
			Expect(api.Update(ctx, &reduced)).To(Succeed())
			run(build(folder), r.env, r.args...)
			create(ctx, read(filepath.Join(folder, "object.yaml"), ns))
			Eventually(countForbidden).WithArguments(address).Should(BeNumerically(">", 0), "without "+omitted)
		})
	}

	It("wrote the manifests of the examples", func(ctx context.Context) {
		for _, name := range []string{"getting-started", "database"} {
			folder, out := filepath.Join("..", "..", "examples", name), GinkgoT().TempDir()
			generated(ctx, folder, "--format", "kustomize", "--output", out)
			files, err := os.ReadDir(out)
			Expect(err).NotTo(HaveOccurred())
			Expect(files).To(HaveLen(5))
			for _, file := range files {
				Expect(contentOf(filepath.Join(folder, "deploy", file.Name()))).
					To(Equal(contentOf(filepath.Join(out, file.Name()))), "write it again as its README says")
			}
		}
	})
})

func contentOf(file string) []byte {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	return content
}
