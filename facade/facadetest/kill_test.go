package facadetest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// handlerNotes collects notes of the handlers of running and killed operators.
type handlerNotes struct {
	mu    sync.Mutex
	notes []string
}

func (d *handlerNotes) add(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, what)
}

func (d *handlerNotes) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.notes)
}

// newLabellingOperator returns an operator that labels config maps twice, with a minute in between, and notes each
// step.
func newLabellingOperator(told *handlerNotes) *kopf.Operator {
	op := kopf.New("labeller.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("label", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		base := client.MergeFrom(c.Object.DeepCopy())
		c.Object.Labels = map[string]string{"first": "yes"}
		if err := c.Client.Patch(ctx, c.Object, base); err != nil {
			return err
		}
		told.add("between")
		select {
		case <-ctx.Done():
			told.add("cancelled")
			return ctx.Err()
		case <-time.After(time.Minute):
		}
		told.add("after")
		base = client.MergeFrom(c.Object.DeepCopy())
		c.Object.Labels["second"] = "yes"
		err := c.Client.Patch(ctx, c.Object, base)
		told.add("answered")
		return err
	})
	return op
}

func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := memapi.New(), &handlerNotes{}
		got := failuresOf(t, func(t testing.TB) {
			r := facadetest.Start(t, newLabellingOperator(told), facadetest.Against(memapi.Config(server)))
			r.Ready()
			createConfigMap(t, server, "one")
			time.Sleep(30 * time.Second)
			r.Kill()
			r.Kill()
			createConfigMap(t, server, "two")
			time.Sleep(time.Hour)
			if got, want := told.list(), []string{"between", "after"}; !slices.Equal(got, want) {
				t.Errorf("Kill must not cancel a context or answer a request: got %q, want %q", got, want)
			}
			if calls := r.Calls(); len(calls) != 1 || calls[0].Outcome != "" {
				t.Errorf("a killed operator must not call handlers or end attempts: %v", calls)
			}
			var one corev1.ConfigMap
			key := client.ObjectKeyFromObject(configMap("one"))
			if err := newUserClient(t, server).Get(t.Context(), key, &one); err != nil {
				t.Errorf("reading the object: %v", err)
			}
			if one.Labels["first"] == "" || one.Labels["second"] != "" {
				t.Errorf("only the write before Kill may have an effect: %v", one.Labels)
			}
			select {
			case <-r.Ended():
				t.Errorf("a killed operator must not end before Stop")
			default:
			}
			if err := r.Stop(); err == nil || err.Error() != "the operator was killed" || r.ExitCode() != -1 {
				t.Errorf("Stop must report that the operator was killed: got %v, exit code %d", err, r.ExitCode())
			}
		})
		if got != "" {
			t.Errorf("Kill must not fail the test: %s", got)
		}
	})
}

func TestRestartAfterKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := memapi.New(), &handlerNotes{}
		got := failuresOf(t, func(t testing.TB) {
			first := facadetest.Start(t, newLabellingOperator(told), facadetest.Against(memapi.Config(server)))
			first.Ready()
			createConfigMap(t, server, "one")
			time.Sleep(30 * time.Second)
			first.Kill()
			second := facadetest.Start(t, newLabellingOperator(told), facadetest.Against(memapi.Config(server)))
			second.Settle(time.Hour, 24*time.Hour)
			if calls := second.Calls(); len(calls) != 1 || calls[0].Outcome != "success" || calls[0].Attempt != 1 {
				t.Errorf("the next operator must repeat the attempt that was cut off: %v", calls)
			}
		})
		if got != "" {
			t.Errorf("a killed operator must not fail a test: %s", got)
		}
	})
}

// killingTransport is a connection that kills the operator when it discovers an API group. Controller-runtime holds a
// lock of its RESTMapper during that request.
type killingTransport struct {
	next  http.RoundTripper
	group string
	kill  func()
}

func (k *killingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/apis/"+k.group {
		k.kill()
	}
	return k.next.RoundTrip(r)
}

// newCreatingOperator returns an operator that creates a deployment for the config map "one", and a second later a role
// for "two".
func newCreatingOperator(told *handlerNotes) *kopf.Operator {
	op := kopf.New("creators.example.org")
	maps := kopf.For(op, &corev1.ConfigMap{})
	maps.OnCreate("make", func(ctx context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
		meta := metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name}
		var child client.Object = &appsv1.Deployment{ObjectMeta: meta}
		if c.Object.Name == "two" {
			time.Sleep(time.Second)
			child = &rbacv1.Role{ObjectMeta: meta}
		}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(child), child); apierrors.IsNotFound(err) {
			told.add(c.Object.Name + " reads")
		}
		err := c.Client.Create(ctx, child)
		told.add(c.Object.Name + " creates")
		return err
	})
	return op
}

func TestKillDuringDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, told := memapi.New(), &handlerNotes{}
		got := failuresOf(t, func(t testing.TB) {
			way := &killingTransport{next: server, group: "apps/v1"}
			r := facadetest.Start(t, newCreatingOperator(told), facadetest.Against(memapi.Config(way)))
			way.kill = r.Kill
			r.Ready()
			createConfigMap(t, server, "two")
			time.Sleep(time.Millisecond)
			createConfigMap(t, server, "one")
			time.Sleep(time.Hour)
			if got, want := told.list(), []string{"one reads", "two reads"}; !slices.Equal(got, want) {
				t.Errorf("reads must be answered, writes must not: got %q, want %q", got, want)
			}
			for _, child := range []client.Object{&appsv1.Deployment{}, &rbacv1.Role{}} {
				key := client.ObjectKey{Namespace: "default", Name: "one"}
				if err := newUserClient(t, server).Get(t.Context(), key, child); !apierrors.IsNotFound(err) {
					t.Errorf("a write of a killed operator must not arrive: %T: %v", child, err)
				}
			}
		})
		if got != "" {
			t.Errorf("Kill during discovery must not fail the test: %s", got)
		}
	})
}

func TestKilledOperatorLogsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		got := failuresOf(t, func(t testing.TB) {
			op := kopf.New("talker.example.org")
			kopf.For(op, &corev1.ConfigMap{}).OnCreate("talk", func(
				ctx context.Context, _ *kopf.Change[*corev1.ConfigMap],
			) error {
				log.FromContext(ctx).Info("alive")
				time.Sleep(time.Minute)
				log.FromContext(ctx).Info("dead")
				return nil
			})
			r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
			r.Ready()
			createConfigMap(t, server, "one")
			r.Await("alive", time.Minute)
			r.Kill()
			time.Sleep(time.Hour)
			if strings.Contains(r.Output(), "msg=dead") {
				t.Errorf("a killed operator must not log:\n%s", r.Output())
			}
		})
		if got != "" {
			t.Errorf("Kill must not fail the test: %s", got)
		}
	})
}
