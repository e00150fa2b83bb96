package reconcilers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/test/memapi"
)

// weather is what a storm has done to honest objects.
type weather struct {
	deletion, tick time.Duration // the slowest: from the request on; between two of one object
	deleted, ticks int
}

// storm lets honest objects live and be deleted, among others or not. All have a timer of a second.
func storm(t *testing.T, among bool) (w weather) {
	const honest, minute = 30, time.Minute
	synctest.Test(t, func(t *testing.T) {
		server, j := memapi.New(), &timesheet{}
		p := newPeople(t, server)
		is := func(name, what string) bool { return strings.HasPrefix(name, what) }
		act := func(name string, _ int) error {
			if is(name, "failing") {
				return errNotYet
			}
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		tick := timer("t", time.Second, func(ctx context.Context, c *handlers.Call) error {
			if name, _ := j.note("t", c); is(name, "hanging") {
				<-ctx.Done()
			}
			return nil
		})
		stop := operateAll(t, server, reconcilers.Options{}, to(t, "configmaps", j.handler("c", cause.Create, act)),
			to(t, "configmaps", j.handler("u", cause.Update, act)),
			to(t, "configmaps", j.handler("d", cause.Delete, act)),
			to(t, "configmaps", tick))
		defer stop()
		p.createMany("ConfigMap", "honest", honest)
		time.Sleep(10 * time.Second)
		if among {
			p.createMany("ConfigMap", "hanging-c", 120)
			p.createMany("ConfigMap", "hanging-d", 60)
			p.createMany("ConfigMap", "failing", 120)
			time.Sleep(10 * time.Second)
			for n := range 60 {
				p.remove("ConfigMap", fmt.Sprint("hanging-d-", n))
				p.remove("ConfigMap", fmt.Sprint("failing-", n))
			}
		}
		began, removed := time.Now(), map[string]time.Time{}
		for step := range honest {
			for n := step; n < honest; n++ {
				p.label("ConfigMap", fmt.Sprint("honest-", n), fmt.Sprint(step))
			}
			name := fmt.Sprint("honest-", step)
			removed[name] = time.Now()
			p.remove("ConfigMap", name)
			time.Sleep(minute / honest)
		}
		time.Sleep(minute)
		for name, at := range removed {
			if times := j.of("d", name); len(times) > 0 {
				w.deleted, w.deletion = w.deleted+1, max(w.deletion, times[0].Sub(at))
			}
			last := began
			for _, at := range j.of("t", name) {
				if at.After(began) {
					w.ticks, w.tick, last = w.ticks+1, max(w.tick, at.Sub(last)), at
				}
			}
		}
	})
	return w
}

// In a storm of objects that hang and objects that fail, honest ones are deleted and ticked as if they were alone.
func TestHonestObjectsInAStorm(t *testing.T) {
	alone, among := storm(t, false), storm(t, true)
	t.Logf(
		"alone: the slowest deletion after %s, the slowest tick after %s, %d deletions, %d ticks", alone.deletion,
		alone.tick, alone.deleted, alone.ticks,
	)
	t.Logf(
		"among: the slowest deletion after %s, the slowest tick after %s, %d deletions, %d ticks", among.deletion,
		among.tick, among.deleted, among.ticks,
	)
	if among.deleted != alone.deleted || among.ticks < alone.ticks*3/4 {
		t.Errorf(
			"%d deletions and %d ticks alone, %d and %d among others", alone.deleted, alone.ticks, among.deleted,
			among.ticks,
		)
	}
	if among.tick > 2*alone.tick || among.deletion > alone.deletion+time.Second {
		t.Errorf(
			"the slowest deletion and tick: %s and %s alone, %s and %s among others", alone.deletion, alone.tick,
			among.deletion, among.tick,
		)
	}
}
