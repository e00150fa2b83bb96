package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// syncTimeout is how long an operator may take to see all pods: with tens of thousands, some need minutes.
const syncTimeout = 15 * time.Minute

func createPods(ctx context.Context, b *Bench) error {
	b.say("pods: creating %d of them", b.Objects)
	return b.Cluster.CreatePods(ctx, b.Objects)
}

func deletePods(ctx context.Context, b *Bench) error {
	b.say("pods: deleting them")
	return b.Cluster.DeletePods(ctx, b.Objects)
}

// seeAll measures from the start of an operator until its handler has seen all pods, and the memory after a rest.
func seeAll(ctx context.Context, t *trial) error {
	ctx, cancel := context.WithTimeoutCause(ctx, syncTimeout, fmt.Errorf("not all were seen within %s", syncTimeout))
	defer cancel()
	var told []process.FigureLine
	m, err := t.measure(ctx, func(ctx context.Context) (err error) {
		if err := t.start(); err != nil {
			return err
		}
		if told, err = t.awaitAll(ctx); err != nil {
			return err
		}
		return t.pause(ctx, t.IdleTime)
	})
	if err != nil {
		return err
	}
	t.note("all seen s", told[0].ReceivedAt.Sub(t.operator.StartedAt()).Seconds())
	t.note("CPU s", m.cpu.Seconds())
	t.note("writes", float64(m.requests.Writes()))
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.note("steady MB", float64(m.usage.Resident)/megabyte)
	t.note("peak to steady", float64(m.usage.Peak)/float64(m.usage.Resident))
	return nil
}

func (t *trial) awaitAll(ctx context.Context) ([]process.FigureLine, error) {
	every := time.NewTicker(2 * time.Second)
	defer every.Stop()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-every.C:
				t.say("  %s, %s: not all pods seen, after %.0f s", t.contender.Name, t.phase,
					time.Since(t.operator.StartedAt()).Seconds())
			case <-ended:
				return
			}
		}
	}()
	return t.operator.Await(ctx, "all", 1)
}
