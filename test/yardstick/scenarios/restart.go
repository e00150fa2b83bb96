package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

const (
	// sampleInterval is how often the CPU of a starting operator is read; the kernel counts it in hundredths of a
	// second.
	sampleInterval = 20 * time.Millisecond
	// idleDuration is how long an operator must use at most idle of CPU to count as idle.
	idleDuration = 1500 * time.Millisecond
	maxIdleCPU   = 30 * time.Millisecond
	// lateCPUShare is the share of additional CPU after which an operator counts as not idle before. It is large
	// because Kopf stops the workers of all objects some seconds after their last task.
	lateCPUShare = 0.5
	// settleTimeout limits the whole wait.
	settleTimeout = 10 * time.Minute
)

// restart measures from the start of an operator until it is idle and has therefore processed all unchanged objects. It
// uses the CPU for this, because not all operators can report it.
func restart(ctx context.Context, t *trial) error {
	t.stop()
	var settled sample
	m, err := t.measure(ctx, func(ctx context.Context) (err error) {
		if err := t.start(); err != nil {
			return err
		}
		settled, err = t.settle(ctx)
		return err
	})
	if err != nil {
		return err
	}
	count := float64(t.Objects)
	t.note("all known s", settled.at.Sub(t.operator.StartedAt()).Seconds())
	t.note("CPU ms/object", milliseconds(m.cpu)/count)
	t.note("writes", float64(m.requests.Writes()))
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.note("steady MB", float64(m.usage.Resident)/megabyte)
	t.note("peak to steady", float64(m.usage.Peak)/float64(m.usage.Resident))
	t.Book.Remark(t.phase, t.contender.Name, m.requests.Describe(t.Objects))
	return nil
}

// probe changes one object after the restart, to detect an operator that was idle because it had failed.
func probe(ctx context.Context, t *trial) error {
	if err := t.Cluster.Change(ctx, 0, "probed"); err != nil {
		return err
	}
	return t.await(ctx, "changed after the restart, and handled", 1, seenCountOf("probed"))
}

type sample struct {
	at    time.Time
	usage process.Usage
}

// settle returns the time at which the operator became idle, after it has stayed idle for a while. An operator that
// continues after that was waiting for something, such as a slow response.
func (t *trial) settle(ctx context.Context) (sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, fmt.Errorf("it was not quiet within %s", settleTimeout))
	defer cancel()
	for {
		found, err := t.becomeQuiet(ctx)
		if err != nil {
			return sample{}, err
		}
		if err := t.pause(ctx, t.IdleTime); err != nil {
			return sample{}, err
		}
		usage, err := t.operator.Usage()
		if err != nil {
			return sample{}, err
		}
		if more := usage.CPU - found.usage.CPU; float64(more) <= max(lateCPUShare*float64(found.usage.CPU),
			float64(2*maxIdleCPU)) {
			return found, nil
		}
		t.say("  %s, %s: it was quiet, and went on", t.contender.Name, t.phase)
	}
}

// becomeQuiet waits until the operator has used almost no CPU for a while, and returns the beginning of that period.
func (t *trial) becomeQuiet(ctx context.Context) (sample, error) {
	said := time.Now()
	for samples := []sample(nil); ; {
		usage, err := t.operator.Usage()
		if err != nil {
			return sample{}, err
		}
		now := sample{time.Now(), usage}
		samples = append(samples, now)
		for now.usage.CPU-samples[0].usage.CPU > maxIdleCPU {
			samples = samples[1:]
		}
		if now.at.Sub(samples[0].at) >= idleDuration {
			return samples[0], nil
		}
		if now.at.Sub(said) > 2*time.Second {
			t.say("  %s, %s: at work, with %.1f s of CPU", t.contender.Name, t.phase, usage.CPU.Seconds())
			said = now.at
		}
		if err := t.pause(ctx, sampleInterval); err != nil {
			return sample{}, err
		}
	}
}
