package kopf_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// The check needs a successful upgrade. The cleanup runs after both, even if they failed.
func ExampleAfter() {
	type Change = kopf.Change[*corev1.ConfigMap]

	succeed := func(context.Context, *Change) error { return nil }
	upgrade := func(context.Context, *Change) error { return kopf.Permanent(errors.New("the disk is full")) }
	apply := func(ctx context.Context, c *Change) error {
		c.Sub("upgrade", upgrade, kopf.Retries(3))
		c.Sub("check", succeed, kopf.After("upgrade"))
		c.Sub("cleanup", succeed, kopf.AfterFinished("upgrade", "check"))
		if err := c.RunSubs(ctx); err != nil {
			return err
		}
		if upgrade := c.Outcome("upgrade"); upgrade.State == kopf.SubFailed {
			return kopf.Permanent(fmt.Errorf("the upgrade failed: %s", upgrade.Message))
		}
		return nil
	}

	got := facadetest.NewChange(&corev1.ConfigMap{}).Call(context.Background(), apply)
	states := map[string]kopf.SubState{}
	for _, sub := range got.Subs {
		states[sub.ID] = sub.State
	}
	fmt.Println(states)
	fmt.Println(got.Err)
	// Output:
	// map[check:failed cleanup:succeeded upgrade:failed]
	// the upgrade failed: the disk is full
}
