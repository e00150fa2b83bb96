package kopf_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// zones is a cluster-scoped kind.
var zones = memapi.Resource{Group: "example.org", Version: "v1", Kind: "Zone", Plural: "zones"}

// registerAnnouncers registers handlers that post an event about each object. Each handler sends another request first,
// which triggers a login if needed.
func registerAnnouncers(op *kopf.Operator) {
	post := func(ctx context.Context, c *kopf.Change[*kopf.Unstructured]) error {
		if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(c.Object), c.Object); err != nil {
			return err
		}
		c.Info("Created", "of "+c.Object.GetName())
		return nil
	}
	kopf.ForResource(op, "zones").OnCreate("announce", post)
	kopf.ForResource(op, "widgets").OnCreate("announce", post)
}

// eventSummaries returns the messages of all events, with their namespaces and the namespaces of their objects.
func eventSummaries(t *testing.T, server *memapi.Server) (all []string) {
	t.Helper()
	for _, event := range eventsOf(t, server) {
		all = append(all, fmt.Sprintf("%s in %s, said to be in %s",
			event.Message, event.Namespace, event.InvolvedObject.Namespace))
	}
	slices.Sort(all)
	return all
}

func zone(name string) map[string]any {
	return map[string]any{
		"apiVersion": "example.org/v1", "kind": "Zone", "metadata": map[string]any{"name": name, "uid": "uid-" + name},
	}
}

// TestDefaultNamespaceOfCredentials shows that events about cluster-scoped objects go to the namespace of the
// credentials, which can change with the next login.
func TestDefaultNamespaceOfCredentials(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		server.Install(zones)
		g, logins := &guard{server: server, token: "1"}, 0
		namespaces := []string{"first", "second", ""}
		op := newWidgetOperator()
		op.OnLogin("token", func(context.Context, *kopf.Activity) (*kopf.ConnectionInfo, error) {
			logins++
			info := g.info(fmt.Sprint(logins))
			info.DefaultNamespace = namespaces[logins-1]
			return info, nil
		})
		registerAnnouncers(op)
		stop := startCommand(t, op)
		time.Sleep(time.Minute)
		server.Put(widgetResource, body(map[string]any{"size": int64(1)}))
		for n := range namespaces {
			g.change(fmt.Sprint(n + 1))
			server.Put(zones, zone(fmt.Sprint("z", n+1)))
			time.Sleep(time.Minute)
		}
		if code, stderr := stop(); code != 0 || logins != 3 {
			t.Errorf("exit code %d, %d logins:\n%s", code, logins, stderr)
		}
		want := []string{
			"of w1 in ns, said to be in ns",           // the namespace of the object
			"of z1 in first, said to be in first",     // the namespace of the credentials
			"of z2 in second, said to be in second",   // the namespace of the next login
			"of z3 in default, said to be in default", // the credentials have no namespace
		}
		if d := cmp.Diff(want, eventSummaries(t, server)); d != "" {
			t.Errorf("unexpected namespaces of events: -want, +got:\n%s", d)
		}
	})
}

// TestDefaultNamespaceInManager shows that a manager of the project posts all events about cluster-scoped objects
// to the namespace "default".
func TestDefaultNamespaceInManager(t *testing.T) {
	onWidgets(t, func(t *testing.T, server *memapi.Server) {
		server.Install(zones)
		op := kopf.New("test.example.org")
		registerAnnouncers(op)
		stop := operate(t, server, op, logr.Discard())
		server.Put(zones, zone("z"))
		time.Sleep(time.Minute)
		stop()
		if d := cmp.Diff([]string{"of z in default, said to be in default"}, eventSummaries(t, server)); d != "" {
			t.Errorf("unexpected namespaces of events: -want, +got:\n%s", d)
		}
	})
}
