package facadetest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// diary is what functions tell, be they of a dead operator or of a living one.
type diary struct {
	mu   sync.Mutex
	told []string
}

func (d *diary) tell(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, what)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

// labeller labels config maps twice, with a minute in between, and tells what it did.
func labeller(told *diary) *kopf.Operator {
	op := kopf.New("labeller.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("label", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		base := client.MergeFrom(c.Object.DeepCopy())
		c.Object.Labels = map[string]string{"first": "yes"}
		if err := c.Client.Patch(ctx, c.Object, base); err != nil {
			return err
		}
		told.tell("between")
		select {
		case <-ctx.Done():
			told.tell("cancelled")
			return ctx.Err()
		case <-time.After(time.Minute):
		}
		told.tell("after")
		base = client.MergeFrom(c.Object.DeepCopy())
		c.Object.Labels["second"] = "yes"
		err := c.Client.Patch(ctx, c.Object, base)
		told.tell("answered")
		return err
	})
	return op
}

func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := memapi.New(), &diary{}
		got := judge(t, func(t testing.TB) {
			r := facadetest.Start(t, labeller(told), facadetest.Against(memapi.Config(server)))
			r.Ready()
			createConfigMap(t, server, "one")
			time.Sleep(30 * time.Second)
			r.Kill()
			r.Kill()
			createConfigMap(t, server, "two")
			time.Sleep(time.Hour)
			if got, want := told.read(), []string{"between", "after"}; !slices.Equal(got, want) {
				t.Errorf("no context is cancelled, and no request answered: the function told %q, not %q", got, want)
			}
			if calls := r.Calls(); len(calls) != 1 || calls[0].Outcome != "" {
				t.Errorf("nothing is called in a killed operator, nothing ends: %v", calls)
			}
			var one corev1.ConfigMap
			key := client.ObjectKeyFromObject(configMap("one"))
			if err := people(t, server).Get(t.Context(), key, &one); err != nil {
				t.Errorf("looking at the object: %v", err)
			}
			if one.Labels["first"] == "" || one.Labels["second"] != "" {
				t.Errorf("what was done before has its effect, nothing else: %v", one.Labels)
			}
			select {
			case <-r.Ended():
				t.Errorf("it has come to its end before the test")
			default:
			}
			if err := r.Stop(); err == nil || err.Error() != "the operator was killed" || r.ExitCode() != -1 {
				t.Errorf("it has ended with %v, exit code %d", err, r.ExitCode())
			}
		})
		if got != "" {
			t.Errorf("the test has failed: %s", got)
		}
	})
}

func TestAnotherOneAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := memapi.New(), &diary{}
		got := judge(t, func(t testing.TB) {
			first := facadetest.Start(t, labeller(told), facadetest.Against(memapi.Config(server)))
			first.Ready()
			createConfigMap(t, server, "one")
			time.Sleep(30 * time.Second)
			first.Kill()
			second := facadetest.Start(t, labeller(told), facadetest.Against(memapi.Config(server)))
			second.Settle(time.Hour, 24*time.Hour)
			if calls := second.Calls(); len(calls) != 1 || calls[0].Outcome != "success" || calls[0].Attempt != 1 {
				t.Errorf("what was cut off is done again: %v", calls)
			}
		})
		if got != "" {
			t.Errorf("a killed operator must not fail a test: %s", got)
		}
	})
}
