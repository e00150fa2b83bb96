package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// controlPlane is an API server with its etcd and its clients.
type controlPlane struct {
	environment *envtest.Environment
	config      *rest.Config
	api         client.Client
	folder      string
	auditFile   string
}

// startedControlPlanes are stopped at the end of the suite.
var startedControlPlanes []*controlPlane

// startControlPlane starts etcd and kube-apiserver with feature gates, such as "ShardedListAndWatch=true".
func startControlPlane(gates ...string) (c *controlPlane, err error) {
	c = &controlPlane{environment: &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"),
		CRDDirectoryPaths: []string{
			filepath.Join(manifests, "crd", "kopfexamples.yaml"), filepath.Join(manifests, "crd", "peerings.yaml"),
			filepath.Join("testdata", "crds.yaml"),
		},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}}
	startedControlPlanes = append(startedControlPlanes, c)
	if c.folder, err = os.MkdirTemp("", "e2e-kube-apiserver-"); err != nil {
		return nil, err
	}
	server := c.environment.ControlPlane.GetAPIServer()
	server.CertDir = c.folder // the certificates of users stay valid when the API server is started again
	if len(gates) > 0 {
		server.Configure().Append("feature-gates", gates...)
	}
	if c.auditFile, err = auditRequests(server, c.folder); err != nil {
		return nil, err
	}
	if c.config, err = c.environment.Start(); err != nil {
		return nil, err
	}
	c.config.QPS = -1
	own := rest.CopyConfig(c.config)
	own.WarningHandler = apiWarnings
	c.api, err = client.New(own, client.Options{Scheme: scheme.Scheme})
	return c, err
}

// use makes the functions of the suite use the control plane.
func (c *controlPlane) use() {
	environment, config, api, auditFile = c.environment, c.config, c.api, c.auditFile
}

func (c *controlPlane) stop() error {
	return errors.Join(c.environment.Stop(), os.RemoveAll(c.folder))
}

// shardingControlPlane has an API server that serves parts of the objects, by shardSelector. The first spec that needs
// it starts it.
var shardingControlPlane = sync.OnceValues(func() (*controlPlane, error) {
	return startControlPlane("ShardedListAndWatch=true")
})

// useShardingControlPlane makes the spec, with all functions of the suite, use [shardingControlPlane]. It must precede
// the creation of the spec's namespace.
func useShardingControlPlane() {
	GinkgoHelper()
	sharding, err := shardingControlPlane()
	Expect(err).NotTo(HaveOccurred())
	former := controlPlane{environment: environment, config: config, api: api, auditFile: auditFile}
	sharding.use()
	DeferCleanup(former.use)
}
