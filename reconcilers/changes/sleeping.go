package changes

import (
	"context"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// longestSleep is how long an object with a handler that is delayed is not looked at: the delay may be for ever, by a
// clock that was wrong or by somebody's hand, and sleeps do not follow a clock that is put right.
const longestSleep = 24 * time.Hour

// next is the earliest moment at which a handler wants to be called again, but not later than the longest sleep.
func (p *pass) next() Next {
	if p.gone || p.state == nil || p.exiting {
		return Next{Gone: p.gone, Released: p.released, Written: p.written}
	}
	var after *time.Duration
	for _, delay := range p.state.Delays(p.now()) {
		if after == nil || delay < *after {
			after = ptr.To(min(delay, longestSleep))
		}
	}
	return Next{After: after, Released: p.released, Written: p.written}
}

// mention says once which handlers are delayed for longer than that: by a record, nobody else may ever have heard of
// it.
func (p *pass) mention(ctx context.Context) {
	ids, until := p.sleepers()
	said := strings.Join(ids, " ")
	if said == p.memory.sleeping {
		return
	}
	p.memory.sleeping = said
	if said != "" {
		logf.FromContext(ctx).Info("Handlers are delayed for more than a day", "handlers", ids, "first", until)
	}
}

// sleepers are the handlers that are delayed for longer than the longest sleep, and until when the first of them is.
func (p *pass) sleepers() (ids []string, until time.Time) {
	if p.state == nil {
		return nil, until
	}
	for _, e := range p.state.Handlers() {
		if !e.Active || e.Finished() || e.Delayed == nil || e.Delayed.Sub(p.now()) <= longestSleep {
			continue
		}
		ids = append(ids, e.ID)
		if until.IsZero() || e.Delayed.Before(until) {
			until = *e.Delayed
		}
	}
	return ids, until
}
