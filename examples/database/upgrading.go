package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/database/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// upgrader upgrades databases from one version to another.
type upgrader struct {
	archive  archive
	gate     gate
	software software
}

// step is one sub-handler of an upgrade, with the condition that shows its state.
type step struct {
	id, condition string
	handler       kopf.ChangeFunc[*v1.Database]
	option        kopf.Option
}

// steps depend on one another. The step that allows connections again runs in any case.
func (u upgrader) steps() []step {
	return []step{
		{"backup", "BackedUp", backUp(u.archive), retryPolicy},
		{"drain", "Drained", u.drain, retryPolicy},
		{"install", "Installed", u.install, kopf.After("backup", "drain")},
		{"migrate", "Migrated", u.migrate, kopf.After("install")},
		{"restart", "Restarted", u.restart, kopf.After("migrate")},
		{"verify", "Verified", u.verify, kopf.After("restart")},
		{"admit", "Admitted", u.admit, kopf.AfterFinished("verify")},
	}
}

// upgrade is called again until all steps are finished. Steps that have succeeded are not repeated.
func (u upgrader) upgrade(ctx context.Context, c *Change) error {
	if err := provisioned(c); err != nil {
		return err
	}
	steps := u.steps()
	for _, s := range steps {
		c.Sub(s.id, s.handler, retryPolicy, kopf.JoinOptions(s.option))
	}
	unfinished := c.RunSubs(ctx)
	failed := report(c, steps)
	if unfinished != nil {
		enter(c, v1.PhaseUpgrading)
		return unfinished
	}
	enter(c, v1.PhaseServing)
	if failed != nil {
		c.Warn("UpgradeFailed", failed.Error())
		return kopf.Permanent(failed)
	}
	log.FromContext(ctx).Info("Upgraded", "from", c.Old.Spec.Version, "to", c.Object.Spec.Version)
	return nil
}

// report sets a condition for each outcome. It returns the error of the first failed step.
func report(c *Change, steps []step) (failed error) {
	for _, s := range steps {
		outcome := c.Outcome(s.id)
		switch outcome.State {
		case kopf.SubSucceeded:
			c.Condition(s.condition, metav1.ConditionTrue, "Succeeded", "")
		case kopf.SubFailed:
			c.Condition(s.condition, metav1.ConditionFalse, "Failed", outcome.Message)
			if failed == nil {
				failed = errors.New(s.id + ": " + outcome.Message)
			}
		default:
			c.Condition(s.condition, metav1.ConditionUnknown, "Pending", outcome.Message)
		}
	}
	return failed
}

func (u upgrader) drain(ctx context.Context, c *Change) error {
	left, err := u.gate.Drain(ctx, nameOf(c))
	if err != nil {
		return err
	}
	if left > 0 {
		return kopf.Temporary(fmt.Errorf("%d connections are open", left), time.Second)
	}
	return nil
}

func (u upgrader) install(ctx context.Context, c *Change) error {
	return u.software.Install(ctx, nameOf(c), c.Object.Spec.Version)
}

func (u upgrader) migrate(ctx context.Context, c *Change) error {
	err := u.software.Migrate(ctx, nameOf(c))
	if !errors.Is(err, errIncompatible) {
		return err
	}
	if back := u.software.Install(ctx, nameOf(c), c.Object.Status.Version); back != nil {
		return back
	}
	return kopf.Permanent(err)
}

func (u upgrader) restart(ctx context.Context, c *Change) error {
	running, err := u.software.Restart(ctx, nameOf(c))
	if err != nil {
		return err
	}
	c.Patch(func(db *v1.Database) { db.Status.Version = running })
	return nil
}

// verify checks the version that the previous steps have patched into the status.
func (u upgrader) verify(_ context.Context, c *Change) error {
	if running, wanted := c.Object.Status.Version, c.Object.Spec.Version; running != wanted {
		return kopf.Permanent(fmt.Errorf("version %s runs, and not %s", running, wanted))
	}
	return nil
}

func (u upgrader) admit(ctx context.Context, c *Change) error {
	if err := u.gate.Admit(ctx, nameOf(c)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Connections are let in again", "version", c.Object.Status.Version)
	return nil
}
