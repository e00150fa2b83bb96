package facadetest

import (
	"time"

	"k8s.io/client-go/rest"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// stopWithin is what a slow machine needs to stop an operator that listens.
const stopWithin = 2 * time.Minute

// RunnerOption is one of [Start] and [StartProgram].
type RunnerOption func(*runnerOptions)

type runnerOptions struct {
	settings kopf.RunSettings
	args     []string
	env      []string
	limit    time.Duration
}

// Against says which cluster the operator is for, and as whom: that of memapi.Config, of envtest, or any other.
// Default: as for kubectl, $KUBECONFIG or ~/.kube/config. A program gets it as a file in $KUBECONFIG.
func Against(config *rest.Config) RunnerOption {
	return func(o *runnerOptions) { o.settings.Config = config }
}

// Settings are those that the operator is run with, for what has no option here. The log goes to the output if it has
// none of its own; the same is true for the metrics, which else would be registered twice in the second test. It is not
// for programs.
func Settings(settings kopf.RunSettings) RunnerOption {
	return func(o *runnerOptions) {
		config := o.settings.Config
		o.settings = settings
		if o.settings.Config == nil {
			o.settings.Config = config
		}
	}
}

// Args are those of the command line of a program, such as "run", "-n", "default".
func Args(args ...string) RunnerOption {
	return func(o *runnerOptions) { o.args = append(o.args, args...) }
}

// Env adds variables to the environment of a program, each as "NAME=value". It has those of the test, too.
func Env(variables ...string) RunnerOption {
	return func(o *runnerOptions) { o.env = append(o.env, variables...) }
}

// StopWithin is how long the operator may take from [Runner.Stop] on. Default: 2 minutes. Kopf: timeout.
func StopWithin(limit time.Duration) RunnerOption {
	return func(o *runnerOptions) { o.limit = limit }
}
