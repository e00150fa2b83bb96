package scenarios

import (
	"context"
	"time"
)

// startAlone measures a program from its start until it is idle.
func startAlone(ctx context.Context, t *trial) error {
	m, err := t.measure(ctx, func(ctx context.Context) error {
		if err := t.start(); err != nil {
			return err
		}
		_, err := t.settle(ctx)
		return err
	})
	if err != nil {
		return err
	}
	t.note("CPU s", m.cpu.Seconds())
	t.note("writes", float64(m.requests.Writes()))
	t.note("requests", float64(m.requests.Total()))
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.Book.Remark(t.phase, t.contender.Name, m.requests.Describe(undividedRequests))
	return nil
}

// undividedRequests makes Describe print total numbers: there are no objects to divide by.
const undividedRequests = int(^uint(0) >> 1)

// measureIdle measures an idle program.
func measureIdle(ctx context.Context, t *trial) error {
	m, err := t.measure(ctx, func(ctx context.Context) error {
		t.say("  %s, %s: for %s", t.contender.Name, t.phase, t.Window)
		return t.pause(ctx, t.Window)
	})
	if err != nil {
		return err
	}
	t.note("CPU ms/minute", milliseconds(m.cpu)*float64(time.Minute)/float64(m.wall))
	t.note("requests", float64(m.requests.Total()))
	t.note("resident MB", float64(m.usage.Resident)/megabyte)
	t.note("anonymous MB", float64(m.usage.Anonymous)/megabyte)
	return nil
}
