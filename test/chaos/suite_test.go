package chaos_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	namespace   = "default"
	peeringName = "chaos"
	// waitTimeout is enough for a very slow machine; tests end as soon as their condition holds.
	waitTimeout = 5 * time.Minute
)

// The one control plane of all plays, and its clients.
var (
	config     *rest.Config
	kubeconfig string
	api        client.WithWatch
)

func TestMain(m *testing.M) {
	if about := os.Getenv(operatorVariable); about != "" {
		os.Exit(runOperator(about))
	}
	os.Exit(withControlPlane(m))
}

func withControlPlane(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		fmt.Fprintln(os.Stderr, "KUBEBUILDER_ASSETS is not set: use make explore NAME=chaos, or make assets")
		return 1
	}
	crds := filepath.Join("..", "..", "config", "crd")
	environment := &envtest.Environment{
		BinaryAssetsDirectory: os.Getenv("KUBEBUILDER_ASSETS"), ErrorIfCRDPathMissing: true,
		CRDDirectoryPaths: []string{
			filepath.Join(crds, "kopfexamples.yaml"), filepath.Join(crds, "peerings.yaml"),
		},
		ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout,
	}
	defer func() { _ = environment.Stop() }()
	if err := connect(environment); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func connect(environment *envtest.Environment) (err error) {
	if config, err = environment.Start(); err != nil {
		return err
	}
	config.QPS = -1
	if api, err = client.NewWithWatch(config, client.Options{}); err != nil {
		return err
	}
	user, err := environment.AddUser(envtest.User{Name: "chaos", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	content, err := user.KubeConfig()
	kubeconfig = string(content)
	return err
}

// duration is a variable of the environment, or the default.
func duration(t *testing.T, name string, fallback time.Duration) time.Duration {
	t.Helper()
	value, err := time.ParseDuration(cmp.Or(os.Getenv(name), fallback.String()))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// seed is that of CHAOS_SEED, or another one each time.
func seed(t *testing.T) uint64 {
	t.Helper()
	given := os.Getenv("CHAOS_SEED")
	if given == "" {
		return uint64(time.Now().UnixNano() % 1_000_000) //nolint:gosec // it is positive
	}
	value, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		t.Fatalf("CHAOS_SEED: %v", err)
	}
	return value
}
