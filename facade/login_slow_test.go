package kopf_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestLoginThatTakesLong shows that a login can take longer than the engine waits for its writes. These are repeated
// without another call of a handler, and requests of handlers wait for the login.
func TestLoginThatTakesLong(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		g, called, logins := &guard{server: server, token: "1"}, &calls{}, 0
		op := newWidgetOperator()
		op.OnLogin("token", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
			time.Sleep(2 * time.Minute)
			logins++
			return g.info(fmt.Sprint(logins)), nil
		})
		widgets := kopf.For(op, &Widget{})
		// The client discovers the kind while its credentials are valid: it holds a lock meanwhile, which virtual time
		// cannot wait for.
		widgets.OnCreate("create", func(ctx context.Context, c *Change) error {
			return c.APIReader.Get(ctx, client.ObjectKeyFromObject(c.Object), &Widget{})
		})
		widgets.OnUpdate("update", func(ctx context.Context, c *Change) error {
			called.add("update", c.Object.Name)
			if strings.HasSuffix(c.Object.Name, "0") {
				return c.APIReader.Get(ctx, client.ObjectKeyFromObject(c.Object), &Widget{})
			}
			return nil
		})
		stop := startCommand(t, op)
		time.Sleep(3 * time.Minute)
		want := map[string]int{}
		for i := range 20 {
			server.Put(widgetResource, numbered(i))
		}
		time.Sleep(time.Minute)
		g.change("2")
		for i := range 20 {
			server.Edit(widgetResource, "ns", fmt.Sprint("w", i), func(w map[string]any) {
				w["spec"] = map[string]any{"size": int64(2)}
			})
			want["update "+fmt.Sprint("w", i)] = 1
		}
		time.Sleep(10 * time.Minute)
		for i := range 20 { // an object with an unsaved result would be handled again
			server.Edit(widgetResource, "ns", fmt.Sprint("w", i), func(w map[string]any) {
				w["status"] = map[string]any{"x": "y"}
			})
		}
		time.Sleep(time.Minute)
		code, stderr := stop()
		if d := cmp.Diff(want, called.all()); d != "" {
			t.Errorf("each object must be handled once: -want, +got:\n%s", d)
		}
		if failed := strings.Count(stderr, "Handler failed"); code != 0 || logins != 2 || failed > 0 {
			t.Errorf("exit code %d, %d logins, want 2, %d handlers failed, want none:\n%s", code, logins, failed,
				stderr)
		}
	})
}

// TestExitDuringLaterLogin shows that a login that hangs while the operator works does not delay the exit, and is
// reported.
func TestExitDuringLaterLogin(t *testing.T) {
	for name, hangs := range map[string]bool{"obeying": false, "hanging": true} {
		t.Run(name, func(t *testing.T) {
			onWidgets(t, func(t *testing.T, server *memapi.Server) {
				g, logins := &guard{server: server, token: "1"}, 0
				op := newWidgetOperator()
				op.OnLogin("token", func(ctx context.Context, _ *kopf.Activity) (*kopf.ConnectionInfo, error) {
					if logins++; logins > 1 && hangs {
						time.Sleep(time.Hour)
					} else if logins > 1 {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return g.info("1"), nil
				})
				stop := startCommand(t, op)
				server.Put(widgetResource, numbered(500)) // clients discover kinds under locks
				time.Sleep(time.Minute)
				g.change("2")
				for i := range 20 {
					server.Put(widgetResource, numbered(i))
				}
				time.Sleep(time.Minute)
				began := time.Now()
				code, stderr := stop()
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("the exit took %s:\n%s", took, stderr)
				}
				told := strings.Contains(stderr, `handler "token" is abandoned`)
				if told != hangs || (code == 1) != hangs {
					t.Errorf("only a hanging login must fail the program and be reported: exit code %d:\n%s", code,
						stderr)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
