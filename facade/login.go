package facade

import (
	"context"
	"errors"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/activities"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
)

var errNotServed = errors.New("it is not served yet, so the function would never be called")

// ConnectionInfo says how to connect to an API server. Kopf: ConnectionInfo.
type ConnectionInfo struct {
	// Server is the URL of the API server. Kopf: server.
	Server string
}

// OnLogin registers a handler that gives the credentials for the API server. Not served yet. Kopf: on.login.
func (op *Operator) OnLogin(
	id string, fn func(ctx context.Context, a *Activity) (*ConnectionInfo, error), opts ...ActivityOption,
) {
	op.act("OnLogin", activities.Login, id, opts, caller(fn == nil, func(
		ctx context.Context, call *handlers.Call,
	) (any, error) {
		info, err := fn(ctx, activityOf(call))
		if info == nil {
			return nil, err
		}
		return info, err
	}), errNotServed)
}
