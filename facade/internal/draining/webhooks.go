package draining

import (
	"context"
	"errors"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

// errServing is the reason why webhook entries of a running operator are left.
var errServing = errors.New("the running operator would write them again, and removes them when it stops: stop it, " +
	"and repeat the command")

// drainWebhooks withdraws the entries of the operator from its managed webhook configurations.
func (r *run) drainWebhooks(ctx context.Context, running bool) {
	if r.Webhooks == "" {
		return
	}
	api, err := configurations.NewClient(r.Config, nil)
	if err != nil {
		r.leave("webhook configurations "+r.Webhooks, "entries", err)
		return
	}
	options := configurations.Options{
		Client: api, Name: r.Webhooks, Operator: r.Name, Form: configurations.Form{AsKopf: r.KopfWebhooks},
	}
	found, err := configurations.FindEntries(ctx, options)
	if err != nil {
		r.leave("webhook configurations "+r.Webhooks, "entries", err)
	}
	for _, one := range found {
		r.removeThing(one.String(), "entries and marks", "webhook configurations", func() error {
			if running {
				return errServing
			}
			return one.Withdraw(ctx)
		})
	}
}
