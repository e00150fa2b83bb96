package explorer_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/explorer"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// cloud is a fake service outside of the cluster, with volumes by id.
type cloud struct {
	volumes     map[string]string // the size by id
	volumeCount int
}

// ensure creates the volume with this id, or resizes it.
func (c *cloud) ensure(life *explorer.Life, id, size string) {
	life.Do("ensure volume", func() {
		c.volumes[id] = size
	})
}

// add creates another volume even if the database has one.
func (c *cloud) add(life *explorer.Life, size string) (id string) {
	life.Do("add volume", func() {
		c.volumeCount++
		id = fmt.Sprintf("vol-%d", c.volumeCount)
		c.volumes[id] = size
	})
	return id
}

func (c *cloud) remove(life *explorer.Life, id string) {
	life.Do("remove volume", func() {
		delete(c.volumes, id)
	})
}

// count returns the number of volumes by size.
func (c *cloud) count() any {
	sizes := map[string]int{}
	for _, size := range c.volumes {
		sizes[size]++
	}
	return sizes
}

// databases is an operator that gives each database a volume and a config map, and lists it in the inventory. The
// fields select the planted bugs.
type databases struct {
	cloud *cloud
	life  *explorer.Life

	addsVolume, generatesName, ignoresVersion, skipsRelease bool

	onlyHandler string // the only handler besides those for deletions; empty means all
}

type change = kopf.Change[*kopf.Unstructured]

func (d *databases) operator() *kopf.Operator {
	op := kopf.New("databases.example.org")
	all := kopf.ForResource(op, "databases.example.org")
	for _, one := range []struct {
		id     string
		handle kopf.ChangeFunc[*kopf.Unstructured]
	}{{"provision", d.provision}, {"settings", d.settings}, {"list", d.list}} {
		if d.onlyHandler == "" || d.onlyHandler == one.id {
			all.On(one.id, []kopf.Reason{kopf.ReasonCreate, kopf.ReasonUpdate}, one.handle)
		}
	}
	if !d.skipsRelease {
		all.OnDelete("release", d.release)
	}
	return op
}

func (d *databases) provision(_ context.Context, c *change) error {
	size := kopf.GetFieldOr(c.Object, "spec.size", "small")
	id := kopf.GetFieldOr(c.Object, "status.volume", "")
	switch {
	case d.addsVolume && id == "":
		id = d.cloud.add(d.life, size)
	case id == "":
		id = c.Object.GetName()
		fallthrough
	default:
		d.cloud.ensure(d.life, id, size)
	}
	c.TryPatch(func(o *kopf.Unstructured) error { return kopf.SetField(o, "status.volume", id) })
	return nil
}

func (d *databases) settings(ctx context.Context, c *change) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.GetNamespace()}}
	if d.generatesName && c.Reason == kopf.ReasonCreate {
		child.GenerateName = c.Object.GetName() + "-"
		if err := controllerutil.SetControllerReference(c.Object, child, c.Client.Scheme()); err != nil {
			return err
		}
		return c.Client.Create(ctx, child)
	}
	child.Name = c.Object.GetName()
	child.Data = map[string]string{"size": kopf.GetFieldOr(c.Object, "spec.size", "small")}
	return c.Ensure(ctx, child)
}

// list adds the database to the inventory, which other clients write as well.
func (d *databases) list(ctx context.Context, c *change) error {
	return d.inventory(ctx, c, func(names map[string]string) { names[c.Object.GetName()] = "yes" })
}

func (d *databases) release(ctx context.Context, c *change) error {
	d.cloud.remove(d.life, kopf.GetFieldOr(c.Object, "status.volume", c.Object.GetName()))
	return d.inventory(ctx, c, func(names map[string]string) { delete(names, c.Object.GetName()) })
}

func (d *databases) inventory(ctx context.Context, c *change, edit func(map[string]string)) error {
	var list corev1.ConfigMap
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "inventory"}, &list); err != nil {
		return err
	}
	if list.Data == nil {
		list.Data = map[string]string{}
	}
	edit(list.Data)
	if d.ignoresVersion {
		list.ResourceVersion = ""
	}
	err := c.Client.Update(ctx, &list)
	if apierrors.IsConflict(err) {
		return kopf.Temporary(err, kopf.Immediately)
	}
	return err
}

func database(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "small"}}}
	o.SetAPIVersion("example.org/v1")
	o.SetKind("Database")
	o.SetNamespace("default")
	o.SetName(name)
	return o
}

// server returns a server with the definition of databases and the inventory.
func server(testing.TB) *memapi.Server {
	s := memapi.New()
	s.Install(memapi.Resource{
		Group: "example.org", Version: "v1", Kind: "Database", Plural: "databases", Namespaced: true,
		StatusSubresource: true,
	})
	s.Put(memapi.Resource{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true, Plain: true},
		map[string]any{"metadata": map[string]any{"namespace": "default", "name": "inventory"}})
	return s
}

// scenario returns the life of one database, with planted bugs. A short one has no edit.
func scenario(short bool, plant func(*databases)) func() explorer.Scenario {
	return func() explorer.Scenario {
		volumes := &cloud{volumes: map[string]string{}}
		return explorer.Scenario{
			Server: server,
			Operator: func(life *explorer.Life) *kopf.Operator {
				d := &databases{cloud: volumes, life: life}
				plant(d)
				return d.operator()
			},
			Play: func(p *explorer.Play) {
				orders := database("orders")
				p.Create(orders)
				p.Settle()
				if short {
					return
				}
				p.Edit(orders, func() { _ = unstructured.SetNestedField(orders.Object, "big", "spec", "size") })
			},
			Outside: volumes.count,
		}
	}
}
