package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
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
	var known []discovery.Resource
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
		if found != nil && (known == nil || !slices.EqualFunc(found, known, same)) {
			a.serves(found)
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

// scan gives the resources that are reviewed; not nil, unless nothing is known. Those that the API server cannot tell
// of now are as before.
func (a *Admission) scan(ctx context.Context, before []discovery.Resource) ([]discovery.Resource, error) {
	if len(a.options.Registrations) == 0 {
		return []discovery.Resource{}, nil // there is nothing to look for
	}
	all, err := discovery.Discover(ctx, a.api, a.groups()...)
	var incomplete *discovery.IncompleteError
	if err != nil && !errors.As(err, &incomplete) {
		return before, err
	}
	var wants []discovery.Want
	for _, r := range a.options.Registrations {
		wants = append(wants, discovery.Want{Selector: r.Selector, Use: discovery.Reviewing})
	}
	reviewed := append([]discovery.Resource{}, discovery.Serve(wants, all).Reviewed...)
	for _, former := range before {
		unknown := incomplete != nil && incomplete.AboutGroup(former.Group)
		if unknown && !slices.ContainsFunc(reviewed, func(r discovery.Resource) bool { return same(r, former) }) {
			reviewed = append(reviewed, former)
		}
	}
	return reviewed, err
}

// groups are those in which the resources are; nil is all.
func (a *Admission) groups() (groups []string) {
	for _, r := range a.options.Registrations {
		if !r.Selector.Group.Given {
			return nil
		}
		groups = append(groups, r.Selector.Group.Text)
	}
	return groups
}

// same tells whether nothing differs that matters for reviews.
func same(a, b discovery.Resource) bool { return a.Interchangeable(b) && a.Preferred == b.Preferred }

// serves changes what is served, and what the cluster is told.
func (a *Admission) serves(reviewed []discovery.Resource) {
	served := []review.Served{}
	for _, resource := range reviewed {
		one := review.Served{Resource: resource}
		for i, r := range a.options.Registrations {
			if r.Selector.Matches(resource) {
				one.Handlers = append(one.Handlers, a.handlers[i])
			}
		}
		served = append(served, one)
	}
	a.served.Store(&served)
	if a.writer != nil {
		a.writer.Serve(a.options.hooks(reviewed))
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
	return nil
}

func backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: 30 * time.Second}
}
