package facadetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// settingsOf returns a config map that belongs to a database.
func settingsOf(db *Database, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-" + name}, Data: map[string]string{"owner": value},
	}
}

func newFake(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

func TestTheHandlerUsesTheClient(t *testing.T) {
	there := settingsOf(orders(), "there", "ann")
	there.Namespace = "shop"
	c := newFake(there)
	got := facadetest.NewChange(orders(), facadetest.Client(c)).Call(t.Context(),
		func(ctx context.Context, c *DatabaseChange) error {
			var found corev1.ConfigMap
			key := client.ObjectKey{Namespace: "shop", Name: "orders-there"}
			if err := c.APIReader.Get(ctx, key, &found); err != nil {
				return err
			}
			child := settingsOf(c.Object, "new", found.Data["owner"])
			if err := c.Adopt(child); err != nil {
				return err
			}
			c.EventRecorderFor(child).Info("Created", "as it was not there")
			return c.Client.Create(ctx, child)
		})
	var made corev1.ConfigMap
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders-new"}, &made)
	if err != nil || got.Err != nil || made.Data["owner"] != "ann" || len(made.OwnerReferences) != 1 {
		t.Errorf("the handler must create an owned child: got the errors %v and %v, child %+v", got.Err, err, made)
	}
	want := []facadetest.Posted{
		{About: "ConfigMap shop/orders-new", Type: "Normal", Reason: "Created", Message: "as it was not there"},
	}
	if d := cmp.Diff(want, got.Events); d != "" {
		t.Errorf("the events about the child: -want, +got:\n%s", d)
	}
}

func TestEnsure(t *testing.T) {
	c := newFake()
	ensure := func(names ...string) kopf.ChangeFunc[*Database] {
		return func(ctx context.Context, c *DatabaseChange) error {
			var all []any
			for _, name := range names {
				all = append(all, settingsOf(c.Object, name, c.Object.Spec.Owner))
			}
			return c.Ensure(ctx, all...)
		}
	}
	failing := facadetest.NewChange(orders(), facadetest.Client(c))
	got := failing.Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		if err := ensure("a", "b")(ctx, c); err != nil {
			return err
		}
		return errLater // for another attempt
	})
	if d := cmp.Diff([]string{"ConfigMap shop/orders-a", "ConfigMap shop/orders-b"}, got.Children); d != "" {
		t.Errorf("declared children after error %v: -want, +got:\n%s", got.Err, d)
	}
	if d := cmp.Diff(orders(), got.Object); d != "" || got.Patch != nil {
		t.Errorf("the operator's own annotations must not be in the outcome: patch %v, -want, +got:\n%s", got.Patch, d)
	}
	got = failing.Call(t.Context(), ensure("a"))
	if d := cmp.Diff([]string{"ConfigMap shop/orders-a"}, got.Children); d != "" || got.Err != nil {
		t.Errorf("declared children in the second attempt: error %v, -want, +got:\n%s", got.Err, d)
	}
	var left corev1.ConfigMapList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "orders-a" {
		t.Errorf("a child that is not declared any more must be deleted: error %v, children %v", err, left.Items)
	}
}

// TestEnsureWithRules shows that rules of children (Once, UntilDone, Retain) hold with the fake client.
func TestEnsureWithRules(t *testing.T) {
	cluster := newFake()
	c := facadetest.NewChange(orders(), facadetest.Client(cluster))
	owner := func(name string) string {
		var held corev1.ConfigMap
		key := client.ObjectKey{Namespace: "shop", Name: "orders-" + name}
		if err := cluster.Get(t.Context(), key, &held); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s, %d owners", held.Data["owner"], len(held.OwnerReferences))
	}
	for _, step := range []struct{ value, once, untilDone, retained string }{
		{"ann", "ann, 1 owners", "ann, 1 owners", "ann, 0 owners"},
		{"bob", "ann, 1 owners", "bob, 1 owners", "bob, 0 owners"},
		{"", `configmaps "orders-once" not found`, `configmaps "orders-done" not found`, "bob, 0 owners"},
	} {
		got := c.Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
			if step.value == "" {
				return c.Ensure(ctx)
			}
			err := c.Ensure(ctx, kopf.Once(settingsOf(c.Object, "once", step.value)),
				kopf.UntilDone(settingsOf(c.Object, "done", step.value)),
				kopf.Retain(settingsOf(c.Object, "retained", step.value)))
			return errors.Join(err, errLater) // for another attempt
		})
		if (len(got.Children) == 3) != (step.value != "") {
			t.Errorf("with the value %q: got the children %v, error %v", step.value, got.Children, got.Err)
		}
		all := []string{owner("once"), owner("done"), owner("retained")}
		if d := cmp.Diff([]string{step.once, step.untilDone, step.retained}, all); d != "" {
			t.Errorf("the children for the value %q: -want, +got:\n%s", step.value, d)
		}
	}
}

// TestEnsureOfAnUnknownKind shows that an unstructured child gets a namespace even if the fake client does not know its
// kind, like a child of a type in the scheme. If that is not possible, the error names the missing RESTMapper.
func TestEnsureOfAnUnknownKind(t *testing.T) {
	part := func(namespace string) *unstructured.Unstructured {
		child := &unstructured.Unstructured{}
		child.SetAPIVersion("parts.example.org/v1")
		child.SetKind("Part")
		child.SetName("one")
		child.SetNamespace(namespace)
		return child
	}
	plain := func() *fake.ClientBuilder { // with a separate scheme, as the fake adds kinds to it
		return fake.NewClientBuilder().WithScheme(runtime.NewScheme())
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(part("").GroupVersionKind(), meta.RESTScopeRoot)
	everywhere := orders()
	everywhere.Namespace = ""
	for name, tc := range map[string]struct {
		reason    string
		parent    *Database
		client    client.Client
		namespace string
		want      string // the child, or the error
	}{
		"Default": {
			"a child gets the namespace of its parent", orders(), plain().Build(), "",
			"[Part.parts.example.org shop/one]",
		},
		"NoNamespace": {
			"a child of a parent without a namespace is an error", everywhere, plain().Build(), "",
			"it has no namespace, and neither has its parent: set one; " +
				"facadetest: the client does not know whether the kind has namespaces: set it with WithRESTMapper",
		},
		"OfItsOwn": {
			"a child keeps its own namespace", everywhere, plain().Build(), "shop",
			"[Part.parts.example.org shop/one]",
		},
		"Mapped": {
			"a child of a cluster-scoped kind gets no namespace", everywhere,
			plain().WithRESTMapper(mapper).Build(), "",
			"[Part.parts.example.org one]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := facadetest.NewChange(tc.parent, facadetest.Client(tc.client)).Call(t.Context(),
				func(ctx context.Context, c *DatabaseChange) error { return c.Ensure(ctx, part(tc.namespace)) })
			contains(t, fmt.Sprint(got.Children, errorText(got.Err)), tc.want)
		})
	}
}

func TestWithoutClient(t *testing.T) {
	got := facadetest.NewChange(orders()).Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		_ = c.Client.List(ctx, &corev1.PodList{}) // the outcome reports the error although the handler ignores it
		return nil
	})
	contains(t, errorText(got.Err), "facadetest.Client(fake.NewClientBuilder()")
	got = facadetest.NewChange(orders()).Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		return c.Ensure(ctx, settingsOf(c.Object, "new", "ann"))
	})
	contains(t, errorText(got.Err), "facadetest.Client(fake.NewClientBuilder()")
	for name, use := range map[string]func(ctx context.Context, c client.Client) error{
		"Get":    func(ctx context.Context, c client.Client) error { return c.Get(ctx, client.ObjectKey{}, orders()) },
		"Create": func(ctx context.Context, c client.Client) error { return c.Create(ctx, orders()) },
		"Update": func(ctx context.Context, c client.Client) error { return c.Update(ctx, orders()) },
		"Delete": func(ctx context.Context, c client.Client) error { return c.Delete(ctx, orders()) },
		"DeleteAllOf": func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, orders())
		},
		"Patch": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, orders(), client.MergeFrom(orders()))
		},
		"Status": func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, orders()) },
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			got := facadetest.NewTask(orders()).Call(t.Context(), func(ctx context.Context, r *DatabaseRun) error {
				err = use(ctx, r.Client)
				return nil
			})
			if err == nil {
				t.Error("the request must fail")
			}
			contains(t, errorText(got.Err), "facadetest.Client(")
		})
	}
}

func TestKinds(t *testing.T) {
	databases := schema.GroupVersionKind{Group: "shop.example.org", Version: "v2", Kind: "Database"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(databases, &Database{})
	typed := orders()
	typed.SetGroupVersionKind(databases.GroupKind().WithVersion("v3"))
	for name, tc := range map[string]struct {
		reason string
		object *Database
		client client.Client
		want   string
	}{
		"Unknown": {"without a client, the kind is the name of the Go type", orders(), nil,
			"unknown.facadetest/v1, Kind=Database"},
		"Scheme": {
			"the scheme of the client gives the kind of a type", orders(),
			fake.NewClientBuilder().WithScheme(scheme).Build(),
			"shop.example.org/v2, Kind=Database",
		},
		"Object": {
			"the apiVersion and kind of the object are used", typed,
			fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(),
			"shop.example.org/v3, Kind=Database",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var options []facadetest.Option
			if tc.client != nil {
				options = append(options, facadetest.Client(tc.client))
			}
			c := facadetest.NewChange(tc.object, options...)
			got := c.Call(t.Context(), func(_ context.Context, c *DatabaseChange) error {
				c.SetResult(c.Resource().GroupVersionKind.String() + c.Resource().Plural)
				return nil
			})
			if got.Result != tc.want+"databases" {
				t.Errorf("%s: got the kind %v, error %v", tc.reason, got.Result, got.Err)
			}
		})
	}
}
