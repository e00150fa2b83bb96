package kopf_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const activities = "activities.example.org"

func ignore(context.Context, *kopf.WatchEvent[*kopf.Unstructured]) error { return nil }

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// createAndRead creates an object and reads it without the cache.
func createAndRead(ctx context.Context, name string, c client.Client, live client.Reader) error {
	if err := c.Create(ctx, configMap(name)); err != nil {
		return err
	}
	return live.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, &corev1.ConfigMap{})
}

// TestClientOfStartup shows that the first request of a startup handler triggers a login, and that without a
// request nothing is sent.
func TestClientOfStartup(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		usesClient bool
		wantLogins int
	}{
		"Used":   {"the first request of a startup handler calls the login handler once", true, 1},
		"Unused": {"a startup handler without requests does not call the login handler", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, logins := servedAPI(), &journal{}
				op := kopf.New(activities, kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
				op.OnLogin("login", func(_ context.Context, a *kopf.Activity) (*kopf.ConnectionInfo, error) {
					logins.add(a.ID)
					if a.Client != nil || a.APIReader != nil || a.Settings.Queueing.WorkerLimit != 100 {
						t.Errorf("a login handler gets the settings and no client: %v, %+v",
							a.Client, a.Settings.Queueing)
					}
					return &kopf.ConnectionInfo{Server: "http://memapi", Config: memapi.Config(server)}, nil
				})
				op.OnStartup("crds", func(ctx context.Context, s *kopf.Activity) error {
					if tc.usesClient {
						if err := createAndRead(ctx, "made", s.Client, s.APIReader); err != nil ||
							server.lastFieldManager.Load() != activities {
							t.Errorf("the client writes with the operator's field manager: got %v, error %v",
								server.lastFieldManager.Load(), err)
						}
					}
					if n, l := server.count.Load(), logins.count(); (n > 0) != tc.usesClient || l != tc.wantLogins {
						t.Errorf("%s: got %d requests, %d logins", tc.reason, n, l)
					}
					return nil
				}, kopf.Retries(1))
				kopf.ForResource(op, "configmaps").OnEvent("e", ignore)
				r := facadetest.Start(t, op)
				r.Ready()
			})
		})
	}
}

// TestClientsOfActivities shows that the client of a probe works while the operator runs, and that the client of a
// cleanup handler works after all other handlers have ended.
func TestClientsOfActivities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, seen := servedAPI(), &journal{}
		op := kopf.New(activities, kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		op.OnStartup("limit", func(_ context.Context, s *kopf.Activity) error {
			s.Settings.Queueing.WorkerLimit = 7
			return nil
		})
		made := func(ctx context.Context, a *kopf.Activity) error {
			err := createAndRead(ctx, a.ID, a.Client, a.APIReader)
			seen.add(fmt.Sprintf("%s by %s, %v, limit %d, finalizer %s", a.ID, server.lastFieldManager.Load(), err,
				a.Settings.Queueing.WorkerLimit, a.Settings.Persistence.Finalizer))
			a.Settings.Queueing.WorkerLimit = 1 // changes a copy only
			return err
		}
		op.OnProbe("probe", func(ctx context.Context, a *kopf.Activity) (any, error) { return 1, made(ctx, a) })
		op.OnCleanup("cleanup", made)
		kopf.ForResource(op, "configmaps").OnEvent("e", ignore)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(server)))
		r.Ready()
		if _, err := kopf.AskProbes(t.Context(), op); err != nil {
			t.Error(err)
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		const rest = " by activities.example.org, <nil>, limit 7, finalizer activities.example.org/finalizer"
		seen.requireLines(t, "probe"+rest, "cleanup"+rest)
	})
}

// TestClientOfStartupInAManager shows that a startup handler has a working client in a manager of the project.
func TestClientOfStartupInAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, seen := servedAPI(), &journal{}
		op := kopf.New(activities, kopf.Settings{AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme}})
		kopf.For(op, &Widget{}).OnCreate("create", succeed)
		op.OnStartup("crds", func(ctx context.Context, s *kopf.Activity) error {
			err := createAndRead(ctx, "made", s.Client, s.APIReader)
			seen.add(fmt.Sprintf("by %s, %v", server.lastFieldManager.Load(), err))
			return err
		}, kopf.Retries(1))
		stop := startInManager(t, server, op)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		seen.requireLines(t, "by activities.example.org, <nil>")
	})
}

// TestStartupWithoutCredentials shows that a failed login is the error of the request, so that the startup handler
// can add context to it.
func TestStartupWithoutCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := kopf.New(activities, kopf.Settings{Peering: kopf.PeeringSettings{Standalone: true}})
		refused := errors.New("the vault is sealed")
		op.OnLogin("login", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
			return nil, kopf.Permanent(refused)
		})
		op.OnStartup("crds", func(ctx context.Context, s *kopf.Activity) error {
			if err := s.Client.Create(ctx, configMap("made")); err != nil {
				return kopf.Permanent(fmt.Errorf("making the object: %w", err))
			}
			return nil
		})
		if err := op.Run(t.Context()); !errors.Is(err, refused) {
			t.Errorf("Run returns the error of the login handler: got %v", err)
		}
	})
}
