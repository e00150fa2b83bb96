package facade

import (
	"io"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Plan is what the operator hands to the engine; or all that is wrong with it.
func Plan(op *Operator, scheme *runtime.Scheme) ([]reconcilers.Registration, error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.plan(scheme)
}

// EngineOptions are the operator's settings as the engine gets them.
func EngineOptions(op *Operator) reconcilers.Options { return op.options(nil) }

// Connect gives the operator a client, as the set-up does.
func Connect(op *Operator, c client.Client) { op.client = client.WithFieldOwner(c, op.name) }

// NewLogger is the logger of a format at the usual level.
func NewLogger(out io.Writer, format, operator string) logr.Logger {
	return newLogger(out, (&runner{format: format, op: &Operator{name: operator}}).logging())
}

// SetKlog gives the client libraries their logger.
func SetKlog(log logr.Logger) { setKlog(log, false) }

// WriteKlog is what happens to a line of klog.
func WriteKlog(log logr.Logger, debug bool, line string) { writeKlog(log, debug, line) }

// LoadConfig finds the cluster.
func LoadConfig(path string) (*rest.Config, error) { return loadConfig(path) }
