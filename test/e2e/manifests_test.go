package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// generated returns the objects that an example prints by the command manifests.
func generated(ctx context.Context, folder string, args ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	offline := []string{"--crds", filepath.Join(folder, "crd.yaml"), "--kubeconfig", "/nowhere"}
	return printed(ctx, folder, append(offline, args...)...)
}

// printed returns the objects that the command manifests of a program prints.
func printed(ctx context.Context, folder string, args ...string) (all []*unstructured.Unstructured) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, build(folder), append([]string{"manifests"}, args...)...)
	command.Stderr = GinkgoWriter
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

// generatedRights are the permissions of an operator in a cluster.
type generatedRights struct {
	user  string // the service account
	roles []*unstructured.Unstructured
}

// grantGenerated applies service accounts, roles and bindings.
func grantGenerated(ctx context.Context, objects []*unstructured.Unstructured) (granted generatedRights) {
	GinkgoHelper()
	for _, object := range objects {
		// Other specs apply a ClusterRole of this name, too.
		applied := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
		Expect(api.Apply(ctx, applied, client.FieldOwner("e2e"), client.ForceOwnership)).To(Succeed())
		switch object.GetKind() {
		case "ServiceAccount":
			granted.user = "system:serviceaccount:" + object.GetNamespace() + ":" + object.GetName()
		case "Role", "ClusterRole":
			granted.roles = append(granted.roles, object)
		}
	}
	return granted
}

// omit removes the rules for a resource, and waits until the API server applies the change.
func (g generatedRights) omit(ctx context.Context, ns, resource string) {
	GinkgoHelper()
	var removed []rbacv1.PolicyRule
	for _, role := range g.roles {
		var reduced rbacv1.ClusterRole // a Role has the same fields
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &reduced)).To(Succeed())
		reduced.Rules = slices.DeleteFunc(reduced.Rules, func(rule rbacv1.PolicyRule) bool {
			isIt := slices.Contains(rule.Resources, resource)
			if isIt {
				removed = append(removed, rule)
			}
			return isIt
		})
		changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&reduced)
		Expect(err).NotTo(HaveOccurred())
		Expect(api.Update(ctx, &unstructured.Unstructured{Object: changed})).To(Succeed())
	}
	Expect(removed).NotTo(BeEmpty(), "there is no rule for "+resource)
	name, subresource, _ := strings.Cut(resource, "/")
	Eventually(func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: g.user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: ns, Verb: removed[0].Verbs[0],
				Group: removed[0].APIGroups[0], Resource: name, Subresource: subresource,
			},
		}}
		Expect(api.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}).Should(BeFalse(), "without "+resource)
}

var _ = Describe("The command manifests", func() {
	for example, omitted := range map[string]string{"getting-started": "configmaps", "database": "databases/status"} {
		folder := filepath.Join("..", "..", "examples", example)
		It("grants "+example+" what it needs, and nothing else", func(ctx context.Context) {
			install(filepath.Join(folder, "crd.yaml"))
			ns := namespace(ctx)
			objects := generated(ctx, folder, "-n", ns, "--operator-namespace", ns, "--only", "rbac")
			rights := grantGenerated(ctx, objects)
			r := exampleRun{
				folder: folder, namespace: ns, env: []string{"KUBECONFIG=" + userOf(ctx, rights.user, nil)},
				args: []string{"-n", ns}, beforeExit: func() {},
			}
			r.play(ctx, steps(filepath.Join(folder, "expected.txt")))
			total, refused := auditedRequests(rights.user)
			Expect(total).To(BeNumerically(">", 0))
			Expect(refused).To(BeEmpty(), "the permissions suffice for everything that the example does")

			rights.omit(ctx, ns, omitted)
			run(build(folder), r.env, r.args...)
			create(ctx, read(filepath.Join(folder, "object.yaml"), ns))
			Eventually(refusedRequests).WithArguments(rights.user).ShouldNot(BeEmpty(), "without "+omitted)
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
