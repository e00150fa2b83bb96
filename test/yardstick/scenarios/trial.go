package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/yardstick/cluster"
	"github.com/kopf-runtime/kopf-runtime/test/yardstick/process"
)

// trial is one contender in one round.
type trial struct {
	*Bench
	scenario  string
	contender Contender
	round     int
	phase     string

	operator     *process.Process // nil while it is stopped
	stopWatching context.CancelFunc
	fail         context.CancelCauseFunc
}

// playOne runs the phases and removes all objects. If a phase fails or the context ends, it only stops the operator,
// because the whole control plane is removed then.
func (s Scenario) playOne(ctx context.Context, b *Bench, c Contender, round int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &trial{Bench: b, scenario: s.Name, contender: c, round: round, fail: cancel}
	defer t.stop()
	b.say("%s, round %d of %d: %s", s.Name, round+1, b.Rounds, c.Name)
	for _, p := range s.phases {
		t.phase = p.name
		if err := p.run(ctx, t); err != nil {
			return fmt.Errorf("%s, %s, %s: %w", s.Name, c.Name, p.name, err)
		}
	}
	t.phase = "tidying up"
	if err := t.cleanUp(ctx); err != nil {
		return fmt.Errorf("%s, %s, %s: %w", s.Name, c.Name, t.phase, err)
	}
	return nil
}

// start runs the operator. If it ends by itself, the context of the trial ends with its error.
func (t *trial) start() error {
	args := slices.Clone(t.contender.Args)
	if t.contender.OnlyScenario == "" {
		args = append(args, t.scenario, strconv.Itoa(t.Objects))
	}
	variables := []string{"KUBECONFIG=" + t.Cluster.Kubeconfig(t.contender.User())}
	operator, err := process.Start(args, variables, filepath.Join(t.Folder, t.contender.Name+".log"))
	if err != nil {
		return err
	}
	wanted := make(chan struct{})
	t.operator, t.stopWatching = operator, func() { close(wanted) }
	go func() {
		select {
		case <-operator.Done():
			t.fail(operator.Err())
		case <-wanted:
		}
	}()
	return nil
}

func (t *trial) stop() {
	if t.operator == nil {
		return
	}
	t.stopWatching()
	t.operator.Stop()
	t.operator = nil
}

// cleanUp stops the operator and removes all objects.
func (t *trial) cleanUp(ctx context.Context) error {
	t.stop()
	if t.Cluster.Tally.Counts().Objects == 0 {
		return nil
	}
	if err := t.Cluster.Release(ctx, t.Objects+1); err != nil {
		return err
	}
	if err := t.Cluster.DeleteAll(ctx, 0, t.Objects+1); err != nil {
		return err
	}
	return t.await(ctx, "objects left", 0, objectCount)
}

// await waits until a number of objects have reached a state.
func (t *trial) await(ctx context.Context, what string, want int, number func(cluster.Counts) int) error {
	err := t.Cluster.Tally.Await(ctx, want, number, func(now int) {
		t.say("  %s, %s: %s: %d, wanted are %d", t.contender.Name, t.phase, what, now, want)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func objectCount(c cluster.Counts) int  { return c.Objects }
func createdCount(c cluster.Counts) int { return c.Created }

func seenCountOf(field string) func(cluster.Counts) int {
	return func(c cluster.Counts) int { return c.Seen[field] }
}

func (t *trial) note(figure string, value float64) {
	t.Book.Note(t.phase, figure, t.contender.Name, value)
}

// pause waits while the operator runs.
func (t *trial) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
