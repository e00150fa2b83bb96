package serving

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// authorized calls serve with a connection to the cluster. When there are no credentials for it any more, the context
// ends, and the error is the reason.
func (o Options) authorized(
	ctx context.Context, settings Settings, serve func(ctx context.Context, to *credentials.Connection) error,
) error {
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	to, err := credentials.Connect(ctx, credentials.Options{
		Login: func(ctx context.Context) (map[string]*credentials.Info, error) {
			return settings.Login(ctx, o.Cluster)
		},
		Prepare: func(config *rest.Config) {
			settings.Connection.Apply(rest.AddUserAgent(config, o.Name))
			config.Wrap(settings.Transport)
		},
		Fail: func(err error) { end(&unauthorizedError{o.Name, err}) },
	})
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // it is told to stop before it has begun
		}
		return err
	}
	err = serve(serving, to)
	var failed *unauthorizedError
	if errors.As(context.Cause(serving), &failed) {
		return failed
	}
	if ctx.Err() != nil {
		err = errors.Join(err, to.Close())
	}
	return err
}

// unauthorizedError is why an operator ends that has no credentials any more.
type unauthorizedError struct {
	name  string
	cause error
}

// Error names the operator.
func (e *unauthorizedError) Error() string {
	return fmt.Sprintf("running operator %q: there are no credentials any more: %v", e.name, e.cause)
}

// Unwrap gives the error of the login.
func (e *unauthorizedError) Unwrap() error { return e.cause }
