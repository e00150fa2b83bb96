package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "github.com/kopf-runtime/kopf-runtime/test/yardstick/api/v1"
)

const (
	// Namespace is the namespace of all objects.
	Namespace = "default"
	// markerUser is the user whose requests mark positions in the audit log.
	markerUser = "yardstick-marker"
	// serverTimeout is the start timeout of the servers, enough for a very slow machine.
	serverTimeout = 5 * time.Minute
)

// Options configures the control plane.
type Options struct {
	// Assets is the folder with etcd, kube-apiserver and kubectl.
	Assets string
	// CRD is the file with the definition of kopfexamples.
	CRD string
	// Folder is an existing folder for the log and the kubeconfigs.
	Folder string
	// Users are the users whose requests are counted.
	Users []string
	// FeatureGates are those of the API server: "ShardedListAndWatch=true".
	FeatureGates []string
	// Progress gets a line every two seconds during long operations.
	Progress io.Writer
}

// Cluster is a running control plane.
type Cluster struct {
	// Tally counts all kopfexamples in a watch.
	Tally *Tally

	folder       string
	progress     io.Writer
	environment  *envtest.Environment
	api          client.Client
	markerClient client.Client
	log          *auditLog
}

// Start starts the servers and watches the objects until the context ends.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	path := filepath.Join(o.Folder, "audit.jsonl")
	c := &Cluster{folder: o.Folder, progress: o.Progress, log: &auditLog{path: path}}
	c.environment = &envtest.Environment{
		BinaryAssetsDirectory: o.Assets, CRDDirectoryPaths: []string{o.CRD}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: serverTimeout, ControlPlaneStopTimeout: serverTimeout,
	}
	if err := c.configure(o, path); err != nil {
		return nil, err
	}
	config, err := c.environment.Start()
	if err == nil {
		err = c.connect(ctx, config, o.Users)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.environment.Stop())
	}
	return c, nil
}

// configure logs one line for each request of the users when it arrives, and raises limits for many rounds of writes.
// Responses are not logged: the watch can report a write before its response is logged.
func (c *Cluster) configure(o Options, path string) error {
	later := []string{"ResponseStarted", "ResponseComplete", "Panic"}
	policy, err := json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": later,
		"rules": []any{
			map[string]any{"level": "Metadata", "users": append([]string{markerUser}, o.Users...)},
			map[string]any{"level": "None"},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the audit policy: %w", err)
	}
	file := filepath.Join(o.Folder, "audit-policy.json")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	c.environment.ControlPlane.GetAPIServer().Configure().
		Append("audit-policy-file", file).Append("audit-log-path", path).
		Append("audit-log-mode", "blocking").Append("audit-log-maxsize", "1000000").
		Append("max-requests-inflight", "2000").Append("max-mutating-requests-inflight", "2000").
		Append("etcd-compaction-interval", "1m")
	if len(o.FeatureGates) > 0 {
		c.environment.ControlPlane.GetAPIServer().Configure().Append("feature-gates", o.FeatureGates...)
	}
	c.environment.ControlPlane.Etcd = &envtest.Etcd{}
	c.environment.ControlPlane.Etcd.Configure().Append("quota-backend-bytes", "16000000000")
	return nil
}

func (c *Cluster) connect(ctx context.Context, config *rest.Config, users []string) error {
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		return err
	}
	for _, name := range append([]string{markerUser}, users...) {
		if err := c.add(name); err != nil {
			return err
		}
	}
	var err error
	if c.api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	c.Tally, err = watch(ctx, config, scheme)
	return err
}

// add creates a user with all rights and a kubeconfig.
func (c *Cluster) add(name string) error {
	user, err := c.environment.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("making the user %s: %w", name, err)
	}
	if name == markerUser {
		c.markerClient, err = client.New(user.Config(), client.Options{})
		return err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return fmt.Errorf("making the kubeconfig of %s: %w", name, err)
	}
	return os.WriteFile(c.Kubeconfig(name), kubeconfig, 0o600)
}

// Kubeconfig returns the path of a user's kubeconfig.
func (c *Cluster) Kubeconfig(user string) string { return filepath.Join(c.folder, user+".kubeconfig") }

// Stop stops the servers.
func (c *Cluster) Stop() error {
	if err := c.environment.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
