package serving

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/credentials"
)

// authorized calls serve with a connection to the cluster. When there are no credentials for it any more, the context
// ends, and the error is the reason.
func (o Options) authorized(
	ctx context.Context, settings Settings, serve func(ctx context.Context, to *credentials.Connection) error,
) error {
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	to, err := credentials.Connect(ctx, settings.credentials(o.Name, o.Cluster, func(err error) {
		end(&unauthorizedError{o.Name, err})
	}))
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

// credentials say how the operator logs in.
func (s Settings) credentials(name string, to Cluster, fail func(error)) credentials.Options {
	return credentials.Options{
		Login: func(ctx context.Context) (map[string]*credentials.Info, error) { return s.Login(ctx, to) },
		Prepare: func(config *rest.Config) {
			s.Connection.Apply(rest.AddUserAgent(config, name))
			config.Wrap(s.Transport)
		},
		Fail: fail,
	}
}

// LateClient is a client without a cache that logs in when it is used first: for a startup, which may use none. An
// error of a login is that of the request.
func (s Settings) LateClient(ctx context.Context, name string, to Cluster) (client.Client, error) {
	config := credentials.ConnectLate(ctx, s.credentials(name, to, func(error) {}))
	return client.New(rest.AddUserAgent(config, name), client.Options{Scheme: s.Scheme})
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
