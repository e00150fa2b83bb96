package clients_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

const (
	// waitTimeout is the longest wait for a cluster or a client on a machine under load.
	waitTimeout = 5 * time.Minute
	// interval is the polling interval for a state that no watch reports.
	interval = 100 * time.Millisecond
)

// cluster is a development cluster, or kube-apiserver without controllers.
type cluster struct {
	config     *rest.Config
	kubeconfig string
	// development is nil for kube-apiserver.
	development *devcluster.Cluster
}

// server is kube-apiserver with etcd. All tests share it, and each uses a separate namespace.
var server envtest.Environment

// startServer starts kube-apiserver with the first test that needs it.
var startServer = sync.OnceValues(func() (cluster, error) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return cluster{}, errors.New("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, " +
			"or `make assets` for the folder to set it to")
	}
	server.BinaryAssetsDirectory = folder
	server.ControlPlaneStartTimeout, server.ControlPlaneStopTimeout = waitTimeout, waitTimeout
	if _, err := server.Start(); err != nil {
		return cluster{}, fmt.Errorf("starting etcd and kube-apiserver: %w", err)
	}
	user, err := server.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return cluster{}, err
	}
	data, err := user.KubeConfig()
	if err != nil {
		return cluster{}, err
	}
	path, err := os.MkdirTemp("", "clients-")
	if err != nil {
		return cluster{}, err
	}
	path = filepath.Join(path, "kubeconfig")
	return cluster{config: user.Config(), kubeconfig: path}, os.WriteFile(path, data, 0o600)
})

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	code := m.Run()
	if server.Config != nil {
		started, err := startServer()
		if err := errors.Join(err, server.Stop(), os.RemoveAll(filepath.Dir(started.kubeconfig))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func startDevelopment(t *testing.T, options devcluster.Options) cluster {
	t.Helper()
	// The cleanup of the test still needs the cluster.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	started, err := devcluster.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := started.Wait(); err != nil {
			t.Error(err)
		}
	})
	return cluster{config: started.Config(), kubeconfig: started.Kubeconfig(), development: started}
}

// onBoth runs a test against the development cluster and against kube-apiserver, so that the expectations hold for
// both.
func onBoth(t *testing.T, options devcluster.Options, play func(t *testing.T, c cluster)) {
	t.Helper()
	t.Run("devcluster", func(t *testing.T) { play(t, startDevelopment(t, options)) })
	t.Run("kube-apiserver", func(t *testing.T) {
		started, err := startServer()
		if err != nil {
			t.Fatal(err)
		}
		play(t, started)
	})
}

// newNamespace creates a namespace for one test.
func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "clients-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// until waits for a state, and fails the test with the last difference from it.
func until(t *testing.T, what string, difference func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for tick := time.NewTicker(interval); ; {
		err := difference(ctx)
		if err == nil {
			tick.Stop()
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, err)
		case <-tick.C:
		}
	}
}
