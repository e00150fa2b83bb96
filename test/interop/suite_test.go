package interop_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/kopf-runtime/kopf-runtime/test/genuine"
)

// The one control plane of the suite, and the Python with Kopf in it. Every spec has a namespace of its own.
var (
	environment *envtest.Environment
	config      *rest.Config
	api         client.Client
	kubeconfig  string
	kopfFolder  string
)

// waitTimeout is how long a test waits without any event: enough for a very slow machine to start either side. Tests
// end as soon as their condition holds.
const waitTimeout = 5 * time.Minute

func TestInterop(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: use make test-envtest SUITES=test/interop, or make assets")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Genuine Kopf and ours on one API server")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(waitTimeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))
	var err error
	kopfFolder, err = genuine.Folder()
	Expect(err).NotTo(HaveOccurred())
	environment = &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"),
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "kopfexamples.yaml")},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}
	config, err = environment.Start()
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	api, err = client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	user, err := environment.AddUser(envtest.User{Name: "kopf", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	content, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, content, 0o600)).To(Succeed())
})

var _ = AfterSuite(func() {
	if environment != nil {
		Expect(environment.Stop()).To(Succeed())
	}
})
