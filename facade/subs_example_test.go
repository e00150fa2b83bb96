package kopf_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// step stands for a part of the work.
func step(context.Context, *kopf.Change[*corev1.ConfigMap]) error { return nil }

// An upgrade has steps: the check comes after the upgrade, and the cleanup when both are finished, whatever came of
// them. The handler fails with the upgrade.
func ExampleAfter() {
	op := kopf.New("databases.example.org")
	kopf.For(op, &corev1.ConfigMap{}).OnUpdate("apply", func(
		ctx context.Context, c *kopf.Change[*corev1.ConfigMap],
	) error {
		c.Sub("upgrade", step, kopf.Retries(3))
		c.Sub("check", step, kopf.After("upgrade"))
		c.Sub("cleanup", step, kopf.AfterFinished("upgrade", "check"))
		if err := c.RunSubs(ctx); err != nil {
			return err
		}
		if upgrade := c.Outcome("upgrade"); upgrade.State == kopf.SubFailed {
			return kopf.Permanent(fmt.Errorf("the upgrade failed: %s", upgrade.Message))
		}
		return nil
	})
}
