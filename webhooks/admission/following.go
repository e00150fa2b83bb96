package admission

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

const (
	// scanInterval is how often the resources are looked for if no CRD changes: extension servers tell of nothing.
	scanInterval = 5 * time.Minute
	// settling is how many more scans follow a change of CRDs: documents of discovery are behind them.
	settling = 3
)

// requests are those for another scan.
type requests chan struct{}

// RequestResync never blocks.
func (r requests) RequestResync() {
	select {
	case r <- struct{}{}:
	default:
	}
}

// follow keeps what is served, and what the cluster is told, up to date with the resources that there are.
func (a *Admission) follow(ctx context.Context) error {
	changed := make(requests, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	if a.crds != nil {
		watching.Go(func() { a.crds.Run(ctx, changed) })
	}
	var known *resources
	said, unsettled, pause := "", 0, backoff()
	for ctx.Err() == nil {
		found, err := a.scan(ctx, known)
		next := scanInterval
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			next = pause.Step()
			if said != err.Error() {
				said = err.Error()
				logf.FromContext(ctx).Error(err, "Cannot find all resources that webhooks are for; retrying")
			}
		case unsettled > 0:
			unsettled--
			next = pause.Step()
		default:
			said, pause = "", backoff()
		}
		if found != nil && (known == nil || !found.same(*known)) {
			a.serves(*found)
			known = found
		}
		if known != nil && err == nil {
			a.first.Do(func() { close(a.scanned) })
		}
		var again <-chan time.Time
		if !a.options.ScanOnce || err != nil {
			again = time.After(next)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-changed:
			pause, unsettled = backoff(), settling
		}
	}
	return nil
}

// serves changes what is served, and what the cluster is told.
func (a *Admission) serves(known resources) {
	served := []review.Served{}
	for _, resource := range known.reviewed {
		one := review.Served{Resource: resource}
		for i, r := range a.options.Registrations {
			if known.has(r, resource) {
				one.Handlers = append(one.Handlers, a.handlers[i])
				if r.Selector.Specific() {
					a.handlers[i].ExpectFailures(resource.GroupKind())
				}
			}
		}
		served = append(served, one)
	}
	a.served.Store(&served)
	a.announce(&known)
}

// announce hands the hooks over to the writer, for the resources, or those of the last call: the startup of the
// operator may have changed its namespaces since then.
func (a *Admission) announce(now *resources) {
	a.hooking.Lock()
	defer a.hooking.Unlock()
	if now != nil {
		a.known = *now
	}
	hooks := a.options.hooks(a.known)
	if a.writer != nil {
		a.writer.Serve(hooks)
	}
	if a.options.Announce == nil || !a.isOpen() {
		return
	}
	objects, err := configurations.Objects(
		a.options.Operator, hooks, tunnels.ByURL("https://announced"+a.options.Path, nil), a.options.form(),
	)
	if err != nil {
		a.options.Log.Error(err, "Cannot make the webhook configurations")
	}
	a.options.Announce(objects)
}

// isOpen reports whether reviews are answered.
func (a *Admission) isOpen() bool {
	select {
	case <-a.open:
		return true
	default:
		return false
	}
}

// opens lets requests in when it is time for that: the resources are known, and the indices filled.
func (a *Admission) opens(ctx context.Context) error {
	for _, condition := range []<-chan struct{}{a.scanned, a.options.Open} {
		if condition == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-condition:
		}
	}
	close(a.open)
	a.announce(nil)
	return nil
}

func backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
