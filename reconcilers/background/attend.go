package background

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
)

// Attend starts and stops what runs beside the object, as it is now. It tells whether the object has to be held on its
// deletion: so it is while anything matches that has not ended by itself, whether it runs or not. With that, all others
// who want the deletion are asked. It also tells whether the deletion has to wait, as something has not ended yet.
func (c *Crew) Attend(ctx context.Context, what *cause.Cause) (holds, busy bool, err error) {
	settings, service := c.current()
	if len(settings.Handlers) == 0 {
		return false, false, nil
	}
	if what.Deleting {
		holds, busy = c.part(ctx, settings.Handlers, what)
		return holds, busy, nil
	}
	matching, err := adapters.Matching(ctx, settings.Handlers, what)
	if err != nil {
		return false, false, err
	}
	t := c.of(what, len(matching) > 0 && service != nil)
	if t == nil {
		return len(matching) > 0, false, nil
	}
	if idling(settings.Handlers) {
		t.seen(what)
	}
	holds = t.align(matching, service != nil)
	if !holds && !idling(settings.Handlers) {
		c.tidy(t)
	}
	return holds, false, nil
}

// part is for an object that is being deleted: all has to end. A filter that cannot judge such an object does not hold
// it.
func (c *Crew) part(ctx context.Context, own []*adapters.Handler, what *cause.Cause) (holds, busy bool) {
	t := c.of(what, false)
	if t != nil {
		t.stop(Deleted)
		busy = t.ending()
	}
	holds = busy
	for _, h := range own {
		if holds {
			break
		}
		matches, err := h.Matches(ctx, what)
		if err != nil {
			logf.FromContext(ctx).Error(
				err, "The object is being deleted; a background handler that cannot be asked does not hold it",
				"handler", h.Description.ID,
			)
		}
		holds = err == nil && matches && (t == nil || !t.over(h.Description.ID))
	}
	return holds, busy
}

func idling(all []*adapters.Handler) bool {
	for _, h := range all {
		if h.Description.Background.Idle > 0 {
			return true
		}
	}
	return false
}

// seen begins the time of idling anew if what matters of the object has changed.
func (t *tasks) seen(what *cause.Cause) {
	data, err := json.Marshal(what.New)
	if err != nil {
		return // an essence is JSON
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data)
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.digest; was != 0 && was != sum.Sum64() {
		t.reset = time.Now()
		for _, k := range t.list {
			k.wakeIdle()
		}
	}
	t.digest = sum.Sum64()
}

// align starts those that match and do not run, and stops the others. True if any has to be stopped on deletion.
func (t *tasks) align(matching []*adapters.Handler, starts bool) (holds bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range append([]*task{}, t.list...) {
		if !among(matching, k.handler) {
			k.stop(Unmatched)
		}
	}
	for _, h := range matching {
		if t.isDone(h.Description.ID) {
			continue
		}
		holds = true
		if starts && t.task(h.Description.ID) == nil {
			t.start(h)
		}
	}
	return holds
}

func among(list []*adapters.Handler, h *adapters.Handler) bool {
	for _, other := range list {
		if other.Description.ID == h.Description.ID {
			return true
		}
	}
	return false
}
