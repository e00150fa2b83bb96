package serving

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// withConnection calls serve with a connection to the cluster. If the credentials expire and cannot be
// replaced, it cancels the context of serve and returns the reason.
func (p Process) withConnection(
	ctx context.Context, settings ManagerSettings, cluster ClusterConfig,
	serve func(ctx context.Context, to *credentials.Connection) error,
) error {
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	to, err := credentials.Connect(ctx, settings.credentialOptions(p.Name, cluster, func(err error) {
		end(&unauthorizedError{p.Name, err})
	}))
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // the operator was stopped before it began
		}
		return err
	}
	err = serve(serving, to)
	// The error of serve is then only a consequence of the cancelled context.
	var failed *unauthorizedError
	if errors.As(context.Cause(serving), &failed) {
		return failed
	}
	// A login may be running when the context ends. Close waits for it and returns its error.
	if ctx.Err() != nil {
		err = errors.Join(err, to.Close())
	}
	return err
}

// credentialOptions returns how the operator logs in.
func (s ManagerSettings) credentialOptions(name string, to ClusterConfig, fail func(error)) credentials.Options {
	return credentials.Options{
		Login: func(ctx context.Context) (map[string]*credentials.Info, error) { return s.Login(ctx, to) },
		// These settings apply to the connection of each login.
		Prepare: func(config *rest.Config) {
			s.Connection.Apply(rest.AddUserAgent(config, name))
			config.Wrap(s.Transport)
		},
		Fail: fail,
	}
}

// unauthorizedError is the error of an operator that has lost its credentials.
type unauthorizedError struct {
	name  string
	cause error
}

// Error contains the name of the operator.
func (e *unauthorizedError) Error() string {
	return fmt.Sprintf("running operator %q: there are no credentials any more: %v", e.name, e.cause)
}

// Unwrap returns the error of the login.
func (e *unauthorizedError) Unwrap() error { return e.cause }
