package e2e_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// manifests is the folder with all manifests of an operator.
var manifests = filepath.Join("..", "..", "config")

// userOf returns the kubeconfig of a new user with these groups and cluster roles.
func userOf(ctx context.Context, name string, groups []string, roles ...string) (path string) {
	GinkgoHelper()
	for _, role := range roles {
		Expect(api.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})).To(Succeed())
	}
	user, err := environment.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	Expect(err).NotTo(HaveOccurred())
	content, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	path = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// installPeering installs the peering kinds of both groups, and removes the legacy ones at the end of the spec.
func installPeering(ctx context.Context) {
	GinkgoHelper()
	installed, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{
		filepath.Join(manifests, "crd", "peerings.yaml"), filepath.Join(manifests, "crd", "zalando", "peerings.yaml"),
	}, CRDs: nil, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
	Expect(installed).To(HaveLen(4))
	DeferCleanup(func(ctx context.Context) {
		for _, one := range installed {
			if strings.HasSuffix(one.Name, ".zalando.org") {
				Expect(client.IgnoreNotFound(api.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{
					ObjectMeta: metav1.ObjectMeta{Name: one.Name},
				}))).To(Succeed())
			}
		}
	})
}

// peeringObject creates a peering object; without a namespace it is cluster-scoped.
func peeringObject(ctx context.Context, group, ns, name string) *unstructured.Unstructured {
	GinkgoHelper()
	kind := "KopfPeering"
	if ns == "" {
		kind = "ClusterKopfPeering"
	}
	object := raw(group+"/v1", kind, ns, name, nil)
	delete(object.Object, "spec")
	create(ctx, object)
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed()) })
	return object
}

// identities returns the peers with records in each object.
func identities(ctx context.Context, objects ...*unstructured.Unstructured) (all [][]string) {
	GinkgoHelper()
	for _, object := range objects {
		fresh := object.DeepCopy()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(object), fresh)).To(Succeed())
		records, err := peering.DecodeRecords(fresh.Object, time.Now())
		Expect(err).NotTo(HaveOccurred())
		all = append(all, slices.Sorted(maps.Keys(records)))
	}
	return all
}

// command runs a command of the operator's command line.
func command(ctx context.Context, kubeconfig, args string) (code int, text string) {
	GinkgoHelper()
	var out bytes.Buffer
	cmd := kopf.New("commands.example.org").Command()
	cmd.SetArgs(append(strings.Fields(args), "--kubeconfig", kubeconfig))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	code = kopf.ExitCode(cmd.ExecuteContext(ctx))
	return code, out.String()
}

var _ = Describe("The manifests in config", func() {
	It("are valid and grant the rights for freeze and resume", func(ctx context.Context) {
		installPeering(ctx)
		administrator := userOf(ctx, "administrator", []string{"system:masters"})
		for _, folder := range []string{".", "samples"} {
			apply := exec.CommandContext(
				ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "apply", "--kubeconfig", administrator,
				"--server-side", "--force-conflicts", "-k", filepath.Join(manifests, folder),
			)
			out, err := apply.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s: %s", folder, out)
		}
		ns := namespace(ctx)
		ofCluster := []*unstructured.Unstructured{
			peeringObject(ctx, "kopf.dev", "", "freezing"), peeringObject(ctx, "zalando.org", "", "freezing"),
		}
		ofNamespace := peeringObject(ctx, "kopf.dev", ns, "freezing")
		person := userOf(ctx, "person", nil, "kopf-runtime-peering", "kopf-runtime-operator")

		code, text := command(ctx, person, "freeze -A -P freezing -t 600 -i me")
		Expect(code).To(BeZero(), text)
		Expect(identities(ctx, ofCluster...)).To(Equal([][]string{{"me"}, {"me"}}))
		code, text = command(ctx, person, "resume -A -P freezing -i me")
		Expect(code).To(BeZero(), text)
		Expect(identities(ctx, ofCluster...)).To(Equal([][]string{nil, nil}))

		code, text = command(ctx, person, "freeze -n "+ns+" -P freezing -t 10m -i me")
		Expect(code).To(BeZero(), text)
		Expect(identities(ctx, ofNamespace)).To(Equal([][]string{{"me"}}))

		merge(ctx, ofNamespace, `{"status": {"me": {"runtime": "one", "busy": 3, "more": {"a": [1]}}}}`)
		fresh := ofNamespace.DeepCopy()
		Expect(api.Get(ctx, client.ObjectKeyFromObject(fresh), fresh)).To(Succeed())
		record, _, err := unstructured.NestedMap(fresh.Object, "status", "me")
		Expect(err).NotTo(HaveOccurred())
		Expect(record).To(HaveKeyWithValue("more", map[string]any{"a": []any{int64(1)}}),
			"the schema keeps unknown fields of a record")

		stranger := userOf(ctx, "stranger", nil)
		code, text = command(ctx, stranger, "freeze -A -P freezing -t 600")
		Expect(code).To(Equal(1))
		Expect(text).To(And(ContainSubstring(`User "stranger" cannot patch`), ContainSubstring("peering_role.yaml")))
		code, text = command(ctx, person, "freeze -A -P elsewhere -t 600")
		Expect(code).To(Equal(1))
		Expect(text).To(ContainSubstring(`there is no ClusterKopfPeering "elsewhere"`))
	})
})
