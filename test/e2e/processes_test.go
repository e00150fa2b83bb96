package e2e_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// process starts the program in test/e2e/operator.
func process(ns string, env ...string) *gexec.Session {
	GinkgoHelper()
	return run(build(operatorFolder), env, "-n", ns)
}

// kubeconfigs has the file of each control plane.
var kubeconfigs = map[*envtest.Environment]string{}

// kubeconfigPath returns a file for the control plane that the spec uses.
func kubeconfigPath() string {
	GinkgoHelper()
	if kubeconfigs[environment] == "" {
		user, err := environment.AddUser(envtest.User{Name: "killed", Groups: []string{"system:masters"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		content, err := user.KubeConfig()
		Expect(err).NotTo(HaveOccurred())
		folder, err := os.MkdirTemp("", "e2e-kubeconfig-")
		Expect(err).NotTo(HaveOccurred())
		kubeconfigs[environment] = filepath.Join(folder, "kubeconfig")
		Expect(os.WriteFile(kubeconfigs[environment], content, 0o600)).To(Succeed())
	}
	return kubeconfigs[environment]
}

// cleanProcesses removes the built programs and the kubeconfigs.
func cleanProcesses() {
	Expect(endBuilds()).To(Succeed())
	for _, path := range kubeconfigs {
		Expect(os.RemoveAll(filepath.Dir(path))).To(Succeed())
	}
}
