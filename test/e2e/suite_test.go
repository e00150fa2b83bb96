package e2e_test

import (
	"os"
	"path/filepath"
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

// The suite shares one control plane. Every spec has its own namespace and operators.
var (
	environment *envtest.Environment
	config      *rest.Config
	api         client.Client
	apiWarnings = &warnings{} // the warnings sent to api
	// serverFolder has the certificates and the audit log of the API server.
	serverFolder string
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
	environment = &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"),
		CRDDirectoryPaths: []string{
			filepath.Join(manifests, "crd", "kopfexamples.yaml"), filepath.Join(manifests, "crd", "peerings.yaml"),
			filepath.Join("testdata", "crds.yaml"),
		},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}
	var err error
	serverFolder, err = os.MkdirTemp("", "e2e-kube-apiserver-")
	Expect(err).NotTo(HaveOccurred())
	server := environment.ControlPlane.GetAPIServer()
	server.CertDir = serverFolder // the certificates of users stay valid when the API server is started again
	Expect(auditRequests(server, serverFolder)).To(Succeed())
	config, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	Expect(v1.AddToScheme(scheme.Scheme)).To(Succeed())
	own := rest.CopyConfig(config)
	own.WarningHandler = apiWarnings
	api, err = client.New(own, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	cleanProcesses()
	if environment != nil {
		Expect(environment.Stop()).To(Succeed())
	}
	Expect(os.RemoveAll(serverFolder)).To(Succeed())
})
