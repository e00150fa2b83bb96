package facadetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// ensureDeployment creates a deployment and waits until it is available.
func ensureDeployment(ctx context.Context, c *DatabaseChange) error {
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}}
	if err := c.Ensure(ctx, server); err != nil {
		return err
	}
	available := func(s *appsv1.Deployment) bool { return s.Status.AvailableReplicas > 0 }
	if err := kopf.WaitFor(c, server, available, 10*time.Minute); err != nil {
		return err
	}
	c.Patch(func(db *Database) { db.Status.Host = server.Name })
	return nil
}

// markAvailable acts as the controller of deployments: it makes the deployment available.
func markAvailable(t *testing.T, cluster client.Client, name string) {
	t.Helper()
	var server appsv1.Deployment
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &server); err != nil {
		t.Fatal(err)
	}
	server.Status.AvailableReplicas = 1
	if err := cluster.Status().Update(t.Context(), &server); err != nil {
		t.Fatal(err)
	}
}

func newDeploymentClient() client.Client {
	return fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build()
}

func TestWaitFor(t *testing.T) {
	cluster := newDeploymentClient()
	c := facadetest.NewChange(orders(), facadetest.Client(cluster), facadetest.Owns(&appsv1.Deployment{}))
	for range 2 { // in the second call, the child exists but is not available
		got := c.Call(t.Context(), ensureDeployment, kopf.Timeout(15*time.Minute))
		if got.Awaited != "Deployment.apps orders" || got.Final || got.Object.Status.Host != "" {
			t.Errorf("the handler must wait for the deployment: got %+v", got)
		}
		if got.Delay <= 9*time.Minute || got.Delay > 10*time.Minute {
			t.Errorf("the wait must end within ten minutes, got %s", got.Delay)
		}
		contains(t, errorText(got.Err), "waits for Deployment.apps orders")
	}
	markAvailable(t, cluster, "orders")
	got := c.Call(t.Context(), ensureDeployment, kopf.Timeout(15*time.Minute))
	if got.Err != nil || !got.Final || got.Awaited != "" || got.Object.Status.Host != "orders" {
		t.Errorf("the handler must finish when the deployment is available: got %+v", got)
	}
}

func TestWaitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := facadetest.NewChange(orders(), facadetest.Client(newDeploymentClient()),
			facadetest.Owns(&appsv1.Deployment{}))
		got := c.Call(t.Context(), ensureDeployment)
		time.Sleep(got.Delay)
		got = c.Call(t.Context(), ensureDeployment)
		if !got.Final || !errors.Is(got.Err, kopf.ErrWaitTimeout) || got.Awaited != "" {
			t.Errorf("the wait must end with ErrWaitTimeout: got %+v", got)
		}
	})
}

func TestSubHandlersWait(t *testing.T) {
	cluster := newDeploymentClient()
	c := facadetest.NewChange(orders(), facadetest.Client(cluster), facadetest.Owns(&appsv1.Deployment{}))
	both := func(_ context.Context, c *DatabaseChange) error {
		c.Sub("server", ensureDeployment)
		c.Sub("users", func(context.Context, *DatabaseChange) error { return nil })
		return nil
	}
	got := c.Call(t.Context(), both)
	if got.Awaited != "Deployment.apps orders" || got.Subs[0].State != kopf.SubPending || got.Final {
		t.Errorf("a waiting sub-handler must keep the handler waiting: got %+v", got)
	}
	markAvailable(t, cluster, "orders")
	got = c.Call(t.Context(), both)
	if got.Err != nil || !got.Final || got.Subs[0].State != kopf.SubSucceeded || got.Subs[1].Called {
		t.Errorf("only the sub-handler that waited must be called: got %+v", got)
	}
}

func TestInvalidWaits(t *testing.T) {
	got := facadetest.NewChange(orders(), facadetest.Client(newDeploymentClient())).Call(t.Context(), ensureDeployment)
	contains(t, errorText(got.Err), "register Owns", "pass facadetest.Owns")
	if !got.Final || got.Awaited != "" {
		t.Errorf("a wait without Owns must fail permanently: got %+v", got)
	}
	broken := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errNever
		},
	})
	got = facadetest.NewChange(orders(), facadetest.Client(broken), facadetest.Owns(&appsv1.Deployment{})).
		Call(t.Context(), func(context.Context, *DatabaseChange) error { return nil })
	contains(t, errorText(got.Err), "facadetest: listing the children of kind Deployment: ", errNever.Error())
}

// TestWaitForWhatWasDeleted shows that the wait sees that the handler itself has deleted the child.
func TestWaitForWhatWasDeleted(t *testing.T) {
	cluster := newDeploymentClient()
	c := facadetest.NewChange(orders(), facadetest.Client(cluster), facadetest.Owns(&appsv1.Deployment{}))
	c.Call(t.Context(), ensureDeployment)
	markAvailable(t, cluster, "orders")
	got := c.Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
		if err := c.Client.Delete(ctx, server); err != nil {
			return err
		}
		return kopf.WaitFor(c, server, func(*appsv1.Deployment) bool { return true }, time.Minute)
	})
	if got.Awaited != "Deployment.apps orders" {
		t.Errorf("the handler must wait for the deleted deployment: got %+v", got)
	}
}

// TestWaitForWhatOthersMake shows that an object that another client created is a child if it has the owner reference.
func TestWaitForWhatOthersMake(t *testing.T) {
	db := orders(func(db *Database) { db.UID, db.APIVersion, db.Kind = "1", "shop.example.org/v1", "Database" })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password"}}
	wait := func(_ context.Context, c *DatabaseChange) error {
		return kopf.WaitFor(c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}},
			func(*corev1.Secret) bool { return true }, time.Minute)
	}
	call := func() facadetest.Outcome[*Database] {
		return facadetest.NewChange(db, facadetest.Client(newFake(secret)), facadetest.Owns(&corev1.Secret{})).
			Call(t.Context(), wait)
	}
	if got := call(); got.Awaited != "Secret password" {
		t.Errorf("an object without the owner reference must not end the wait: got %+v", got)
	}
	got := facadetest.NewChange(db, facadetest.Client(newFake(secret)), facadetest.Watches(&corev1.Secret{})).
		Call(t.Context(), wait)
	if got.Err != nil || !got.Final {
		t.Errorf("with Watches, an object without the owner reference must end the wait: got %+v", got)
	}
	secret.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "shop.example.org/v1", Kind: "Database", Name: "orders", UID: "1"},
	}
	if got := call(); got.Err != nil || !got.Final {
		t.Errorf("an object with the owner reference must end the wait: got %+v", got)
	}
}

// TestChildrenAreReleased shows that the operator deletes children that the object cannot own: a namespace and an
// object in another namespace.
func TestChildrenAreReleased(t *testing.T) {
	cluster := newFake()
	c := facadetest.NewChange(orders(), facadetest.Client(cluster))
	got := c.Call(t.Context(), func(ctx context.Context, c *DatabaseChange) error {
		return c.Ensure(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Spec.Owner}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "log", Name: "orders"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own"}})
	})
	want := []string{"ConfigMap log/orders", "ConfigMap shop/own", "Namespace ann"}
	if d := cmp.Diff(want, got.Children); d != "" || got.Err != nil || got.Patch != nil {
		t.Errorf("the children: error %v, patch %v: -want, +got:\n%s", got.Err, got.Patch, d)
	}
	c.Delete()
	retry := true
	farewell := func(context.Context, *DatabaseChange) error {
		if retry {
			return kopf.Temporary(errLater, time.Minute)
		}
		return nil
	}
	if got = c.Call(t.Context(), farewell); got.Final || len(namesOf(t, cluster)) != 3 {
		t.Errorf("the children must stay until the delete handler has finished: got %+v, %v", got, namesOf(t, cluster))
	}
	retry = false
	got = c.Call(t.Context(), farewell)
	if d := cmp.Diff([]string{"shop/own"}, namesOf(t, cluster)); d != "" || got.Err != nil || !got.Final {
		t.Errorf("only owned children are left for the garbage collector: error %v: -want, +got:\n%s", got.Err, d)
	}
}

// namesOf returns the names of all namespaces and config maps.
func namesOf(t *testing.T, cluster client.Client) (all []string) {
	t.Helper()
	var spaces corev1.NamespaceList
	var maps corev1.ConfigMapList
	if err := errors.Join(cluster.List(t.Context(), &spaces), cluster.List(t.Context(), &maps)); err != nil {
		t.Fatal(err)
	}
	for _, one := range spaces.Items {
		all = append(all, one.Name)
	}
	for _, one := range maps.Items {
		all = append(all, one.Namespace+"/"+one.Name)
	}
	return all
}

func TestEdit(t *testing.T) {
	var seen []string
	note := func(_ context.Context, c *DatabaseChange) error {
		seen = append(seen, string(c.Reason)+" "+c.Old.Spec.Owner+"-"+c.Object.Spec.Owner+" "+c.Object.Status.Host)
		c.Patch(func(db *Database) { db.Status.Host = "of " + db.Spec.Owner })
		if len(seen) == 1 {
			return kopf.Temporary(errLater, time.Minute)
		}
		return nil
	}
	c := facadetest.NewChange(orders())
	call := func() facadetest.Outcome[*Database] { return c.Call(t.Context(), note) }
	call()
	c.Edit(func(db *Database) { db.Spec.Owner = "bob" })
	if got := call(); got.Err != nil {
		t.Error(got.Err)
	}
	c.Edit(func(db *Database) { db.Spec.Owner = "eve" })
	got := call()
	if got.Err != nil || got.Object.Spec.Owner != "eve" || got.Object.Status.Host != "of eve" || len(got.Patch) != 1 {
		t.Errorf("an edit of the spec must be handled as an update: got %+v", got)
	}
	c.Edit(func(db *Database) { db.Status.Host = "mine" })
	if got := call(); got.Called || got.Err == nil {
		t.Errorf("a change of the status must not call the handler: got %+v", got)
	}
	c.Delete()
	if got := call(); got.Err != nil || !got.Final {
		t.Error(got.Err)
	}
	want := []string{"create -ann ", "create -bob of ann", "update bob-eve of bob", "delete eve-eve mine"}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("the calls with their old and new state: -want, +got:\n%s", d)
	}
}
