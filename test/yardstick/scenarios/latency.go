package scenarios

import (
	"context"
	"strconv"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/figures"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// stragglerTimeout is how long the handlers of earlier changes may still take after that of the last change.
const stragglerTimeout = 2 * time.Second

// steady changes one object after another at a steady rate. Operators print the age of each change when its handler is
// called. The age starts before the request, so it includes the API server's part, which is the same for all.
func steady(ctx context.Context, t *trial) error {
	changes := int(t.Window.Seconds() * float64(t.Rate))
	var told []process.FigureLine
	m, err := t.measure(ctx, func(ctx context.Context) error {
		t.say("  %s, %s: %d changes in %s", t.contender.Name, t.phase, changes, t.Window)
		last, err := t.change(ctx, changes)
		if err != nil {
			return err
		}
		if err := t.await(ctx, "the last change, handled", 1, seenCountOf(last)); err != nil {
			return err
		}
		told, err = t.latencies(ctx, changes)
		return err
	})
	if err != nil {
		return err
	}
	var ages []float64
	for _, one := range told {
		ages = append(ages, one.Value)
	}
	t.note("median ms", figures.Median(ages))
	t.note("p99 ms", figures.Quantile(ages, 0.99))
	t.note("calls/change", float64(len(ages))/float64(changes))
	t.note("CPU ms/change", milliseconds(m.cpu)/float64(changes))
	return nil
}

// change sends changes at a steady rate without waiting for responses, and returns the last value.
func (t *trial) change(ctx context.Context, changes int) (last string, err error) {
	every := time.NewTicker(time.Second / time.Duration(t.Rate))
	defer every.Stop()
	failed := make(chan error, changes)
	for i := range changes {
		select {
		case <-every.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		value := strconv.FormatInt(time.Now().UnixNano(), 10)
		last = value
		go func() { failed <- t.Cluster.Change(ctx, i%t.Objects, value) }()
	}
	for range changes {
		if err := <-failed; err != nil {
			return "", err
		}
	}
	return last, nil
}

// latencies returns the latencies of all changes, except for those that a later change of the same object superseded.
func (t *trial) latencies(ctx context.Context, changes int) ([]process.FigureLine, error) {
	waiting, cancel := context.WithTimeout(ctx, stragglerTimeout)
	defer cancel()
	told, err := t.operator.Await(waiting, "latency", changes)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	return told, nil // a superseded change does not count as lost
}
