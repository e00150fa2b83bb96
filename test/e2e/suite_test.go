package e2e_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// The suite shares one control plane, and a second one with a feature gate: see [useShardingControlPlane]. Every spec
// has its own namespace and operators.
var (
	environment *envtest.Environment
	config      *rest.Config
	api         client.Client
	apiWarnings = &warnings{} // the warnings sent to api
)

// waitTimeout is enough for a very slow machine; specs end as soon as their condition holds.
const waitTimeout = 5 * time.Minute

func TestE2E(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Whole operators on a real API server")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(waitTimeout)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	logf.SetLogger(loggerTo(GinkgoWriter))
	var ahead []string
	if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) == 0 {
		ahead = append(examples(), operatorFolder) // the whole suite needs all of them
	}
	for _, one := range examplePrograms() {
		if one.skipped == "" {
			ahead = append(ahead, one.folder)
		}
	}
	Expect(buildAhead(ahead...)).To(Succeed())
	GinkgoWriter.Println("starting etcd and kube-apiserver")
	Expect(v1.AddToScheme(scheme.Scheme)).To(Succeed())
	first, err := startControlPlane()
	Expect(err).NotTo(HaveOccurred())
	first.use()
})

var _ = AfterSuite(func() {
	cleanProcesses()
	for _, c := range startedControlPlanes {
		Expect(c.stop()).To(Succeed())
	}
})
