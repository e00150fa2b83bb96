package facadetest

import (
	"time"

	"k8s.io/client-go/rest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// defaultStopTimeout is the default limit for a graceful stop, long enough for a slow machine.
const defaultStopTimeout = 2 * time.Minute

// RunnerOption is an option of [Start] and [StartProgram].
type RunnerOption func(*runnerOptions)

// runnerOptions holds the values of all options.
type runnerOptions struct {
	settings    kopf.RunSettings
	args        []string
	env         []string
	stopTimeout time.Duration
}

// Against sets the connection to the cluster, such as memapi.Config or that of envtest. Default: as for kubectl,
// $KUBECONFIG or ~/.kube/config. A program receives it as a file in $KUBECONFIG.
func Against(config *rest.Config) RunnerOption {
	return func(o *runnerOptions) { o.settings.Config = config }
}

// Settings sets the run settings of the operator, for all settings without an option here. Without a logger in them,
// the log goes to the output. Without a registry for the metrics, the operator gets its own: otherwise, the second test
// would fail to register them. Settings does not apply to programs.
func Settings(settings kopf.RunSettings) RunnerOption {
	return func(o *runnerOptions) {
		// Against and Settings can be passed in any order.
		config := o.settings.Config
		o.settings = settings
		if o.settings.Config == nil {
			o.settings.Config = config
		}
	}
}

// Args appends arguments to the command line of a program, such as "run", "-n", "default".
func Args(args ...string) RunnerOption {
	return func(o *runnerOptions) { o.args = append(o.args, args...) }
}

// Env adds variables to the environment of a program, each as "NAME=value". The program also inherits the environment
// of the test.
func Env(variables ...string) RunnerOption {
	return func(o *runnerOptions) { o.env = append(o.env, variables...) }
}

// StopWithin sets the limit for a graceful stop by [Runner.Stop]. Default: 2 minutes. Kopf: timeout.
func StopWithin(limit time.Duration) RunnerOption {
	return func(o *runnerOptions) { o.stopTimeout = limit }
}
