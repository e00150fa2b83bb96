package devcluster

import (
	"net/http"
	"os"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Options configure [Start]. The zero value is an empty cluster on a free port of 127.0.0.1.
type Options struct {
	// Address is the host and port to listen on. The host must be a loopback address; the port may be 0. The default
	// is "127.0.0.1:0".
	Address string
	// Kubeconfig is the path of the kubeconfig file to write. By default, the file is in a temporary folder and is
	// removed at the end. An existing file is overwritten only if Start has written it.
	Kubeconfig string
	// PretendReady reports Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, Pods and PersistentVolumeClaims
	// as ready a moment after they were created or changed.
	PretendReady bool
	// Load lists files in the format of "kubectl get -o yaml", or folders with such files. Their objects are stored
	// with their uids, resource versions and statuses before Start returns. Objects without a uid are created as by
	// "kubectl create".
	Load []string
	// Save is the path of a file to which all objects are written at the end. The file is replaced atomically.
	Save string
	// WithSecrets saves the values of Secrets. By default, their digests are saved instead.
	WithSecrets bool
	// Record is the path of a file to which each request for objects is written, as a line in the format of audit logs.
	// A former content is removed.
	Record string
	// IgnoreShardSelector ignores the parameter shardSelector of lists and watches, like a real cluster without the
	// feature gate ShardedListAndWatch.
	IgnoreShardSelector bool
	// Log receives failures of requests and of background work. The zero value discards them.
	Log logr.Logger
}

// Cluster is a running development cluster.
type Cluster struct {
	memory     *memapi.Server
	config     *rest.Config
	kubeconfig string
	cleanUp    []func() error
	server     *http.Server
	handler    *handler
	loaded     []*unstructured.Unstructured
	options    Options
	// done is closed when the cluster has ended; err is set before.
	done chan struct{}
	err  error
}

// Wait blocks until the cluster has ended, and returns the errors that occurred.
func (c *Cluster) Wait() error {
	<-c.done
	return c.err
}

// Config returns a client configuration with all permissions. The caller may change it.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of the kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Memory returns the API server in memory, for preparing or inspecting objects without HTTP.
func (c *Cluster) Memory() *memapi.Server { return c.memory }

// Loaded returns the objects that were loaded, except for custom resource definitions.
func (c *Cluster) Loaded() []*unstructured.Unstructured { return slices.Clone(c.loaded) }

// removeFolder returns a function that removes a temporary folder.
func removeFolder(path string) func() error { return func() error { return os.RemoveAll(path) } }
