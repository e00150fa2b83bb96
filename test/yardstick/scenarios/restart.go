package scenarios

import (
	"context"
	"fmt"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

const (
	// look is how often the CPU of an operator is read while it starts: it is counted in hundredths of a second.
	look = 20 * time.Millisecond
	// quiet is for how long an operator may use at most idle of CPU before it counts as through.
	quiet = 1500 * time.Millisecond
	idle  = 30 * time.Millisecond
	// late is what, used behind that in relation to the CPU before, says that it was only waiting for something. It is
	// not small, as Kopf ends the workers of all objects some seconds after the last of them had something to do.
	late = 0.5
	// settling is how long all of it may take.
	settling = 10 * time.Minute
)

// restart measures from the start of an operator until it does nothing any more: all objects are known to be unchanged
// then. This is seen from outside, by its CPU, as not all operators could tell.
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
	t.note("all known s", settled.at.Sub(t.operator.Begun()).Seconds())
	t.note("CPU ms/object", milliseconds(m.cpu)/count)
	t.note("writes", float64(m.requests.Writes()))
	t.note("peak MB", float64(m.usage.Peak)/megabyte)
	t.note("steady MB", float64(m.usage.Resident)/megabyte)
	t.note("peak to steady", float64(m.usage.Peak)/float64(m.usage.Resident))
	t.Book.Remark(t.phase, t.contender.Name, m.requests.Describe(t.Objects))
	return nil
}

// probe changes one object after the restart: an operator that was quiet because it had given up would not notice.
func probe(ctx context.Context, t *trial) error {
	if err := t.Cluster.Change(ctx, 0, "probed"); err != nil {
		return err
	}
	return t.await(ctx, "changed after the restart, and handled", 1, seen("probed"))
}

type sample struct {
	at    time.Time
	usage process.Usage
}

// settle gives the moment at which the operator became quiet, and returns when it has been resting for a while. An
// operator that goes on to work while it should rest was waiting for something, such as a slow answer.
func (t *trial) settle(ctx context.Context) (sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settling, fmt.Errorf("it was not quiet within %s", settling))
	defer cancel()
	for {
		found, err := t.becomeQuiet(ctx)
		if err != nil {
			return sample{}, err
		}
		if err := t.pause(ctx, t.Rest); err != nil {
			return sample{}, err
		}
		usage, err := t.operator.Usage()
		if err != nil {
			return sample{}, err
		}
		if more := usage.CPU - found.usage.CPU; float64(more) <= max(late*float64(found.usage.CPU), float64(2*idle)) {
			return found, nil
		}
		t.say("  %s, %s: it was quiet, and went on", t.contender.Name, t.phase)
	}
}

// becomeQuiet waits until the operator has used next to no CPU for a while, and gives the beginning of that while.
func (t *trial) becomeQuiet(ctx context.Context) (sample, error) {
	said := time.Now()
	for samples := []sample(nil); ; {
		usage, err := t.operator.Usage()
		if err != nil {
			return sample{}, err
		}
		now := sample{time.Now(), usage}
		samples = append(samples, now)
		for now.usage.CPU-samples[0].usage.CPU > idle {
			samples = samples[1:]
		}
		if now.at.Sub(samples[0].at) >= quiet {
			return samples[0], nil
		}
		if now.at.Sub(said) > 2*time.Second {
			t.say("  %s, %s: at work, with %.1f s of CPU", t.contender.Name, t.phase, usage.CPU.Seconds())
			said = now.at
		}
		if err := t.pause(ctx, look); err != nil {
			return sample{}, err
		}
	}
}
