package scenarios

import (
	"context"
	"time"
)

// startReady starts the operator and warms it up with one object, which it deletes again.
func startReady(ctx context.Context, t *trial) error {
	if err := t.start(); err != nil {
		return err
	}
	if err := t.Cluster.Create(ctx, t.Objects, t.Objects+1, t.Size); err != nil {
		return err
	}
	if err := t.await(ctx, "handled", 1, createdCount); err != nil {
		return err
	}
	if err := t.Cluster.DeleteAll(ctx, t.Objects, t.Objects+1); err != nil {
		return err
	}
	return t.await(ctx, "objects left", 0, objectCount)
}

// load creates all objects and waits until they are handled.
func load(ctx context.Context, t *trial) error {
	if err := t.Cluster.Create(ctx, 0, t.Objects, t.Size); err != nil {
		return err
	}
	return t.await(ctx, "created and handled", t.Objects, createdCount)
}

func create(ctx context.Context, t *trial) error {
	return t.work(ctx, func(ctx context.Context) error { return load(ctx, t) })
}

func update(ctx context.Context, t *trial) error {
	return t.work(ctx, func(ctx context.Context) error {
		if err := t.Cluster.ChangeAll(ctx, t.Objects, "updated"); err != nil {
			return err
		}
		return t.await(ctx, "updated and handled", t.Objects, seenCountOf("updated"))
	})
}

// downtime measures the start of an operator after objects have changed.
func downtime(ctx context.Context, t *trial) error {
	t.stop()
	if err := t.Cluster.ChangeAll(ctx, t.Objects, "missed"); err != nil {
		return err
	}
	return t.work(ctx, func(ctx context.Context) error {
		if err := t.start(); err != nil {
			return err
		}
		return t.await(ctx, "missed and handled", t.Objects, seenCountOf("missed"))
	})
}

func remove(ctx context.Context, t *trial) error {
	return t.work(ctx, func(ctx context.Context) error {
		if err := t.Cluster.DeleteAll(ctx, 0, t.Objects); err != nil {
			return err
		}
		return t.await(ctx, "objects left", 0, objectCount)
	})
}

// work measures an operation on all objects.
func (t *trial) work(ctx context.Context, do func(context.Context) error) error {
	m, err := t.measure(ctx, do)
	if err != nil {
		return err
	}
	t.noteWork(m)
	return nil
}

// ticking measures a period in which only timers run.
func ticking(ctx context.Context, t *trial) error {
	m, err := t.measure(ctx, func(ctx context.Context) error {
		t.say("  %s, %s: for %s", t.contender.Name, t.phase, t.Window)
		return t.pause(ctx, t.Window)
	})
	if err != nil {
		return err
	}
	t.note("CPU s/minute", m.cpu.Seconds()/m.wall.Minutes())
	t.note("requests", float64(m.requests.Total()))
	t.note("resident MB", float64(m.usage.Resident)/megabyte)
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.Book.Remark(t.phase, t.contender.Name, m.requests.Describe(t.Objects))
	return t.noteTicks(ctx)
}

// noteTicks stores how often the timers have ticked; operators print the number when they stop.
func (t *trial) noteTicks(ctx context.Context) error {
	operator, alive := t.operator, time.Since(t.operator.StartedAt())
	t.stop()
	told, err := operator.Await(ctx, "ticks", 1)
	if err != nil {
		return err
	}
	t.note("ticks/object/minute, since the start", told[0].Value/float64(t.Objects)/alive.Minutes())
	return nil
}
