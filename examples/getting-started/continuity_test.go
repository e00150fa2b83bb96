package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/kopf-runtime/kopf-runtime/examples/getting-started/api/v1"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// newUploader returns an operator whose second create handler succeeds in its second attempt, an hour after the first.
func newUploader() *kopf.Operator {
	op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{v1.AddToScheme}})
	websites := kopf.For(op, &v1.Website{})
	websites.On("publish", kopf.CreateUpdateResume(), func(context.Context, *Change) error {
		time.Sleep(time.Second) // a second operator begins before the first one saves that it handled the change
		return nil
	})
	websites.OnCreate("upload", func(_ context.Context, c *Change) error {
		if c.Retry == 0 {
			return kopf.Temporary(errors.New("the disk is full"), time.Hour)
		}
		return nil
	})
	websites.OnDelete("close", func(context.Context, *Change) error { return nil })
	return op
}

// TestContinuity shows which handlers the second of two operators calls, by the events between them.
func TestContinuity(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		events func(d *downtime)
		want   []string
	}{
		"unchanged": {"an object that was handled is resumed",
			func(d *downtime) { d.stop(2 * time.Hour) },
			[]string{"resume Website default/home: publish #1: success"}},
		"edited": {"several edits are one update",
			func(d *downtime) { d.stop(2 * time.Hour); d.edit("Only cats"); d.edit("Only dogs") },
			[]string{"update Website default/home: publish #1: success"}},
		"reverted": {"the last state counts",
			func(d *downtime) { d.stop(2 * time.Hour); d.edit("Only cats"); d.edit("Cats & dogs") },
			[]string{"resume Website default/home: publish #1: success"}},
		"status changed": {"the status is not a part of the essence",
			func(d *downtime) { d.stop(2 * time.Hour); d.patchStatus(`{"status":{"page":"another"}}`) },
			[]string{"resume Website default/home: publish #1: success"}},
		"created": {"an object that was never handled is new",
			func(d *downtime) {
				d.stop(2 * time.Hour)
				d.release()
				d.must(d.cluster.Create(d.t.Context(), newWebsite()))
			},
			[]string{
				"create Website default/home: publish #1: success",
				"create Website default/home: upload #1: retry: the disk is full",
				"create Website default/home: upload #2: success",
			}},
		"deleted without the finalizer": {"nothing is left to compare",
			func(d *downtime) { d.stop(2 * time.Hour); d.release() },
			nil},
		"deleted": {"the finalizer has held the object",
			func(d *downtime) { d.stop(2 * time.Hour); d.delete() },
			[]string{"delete Website default/home: close #1: success"}},
		"unfinished": {"handlers that have succeeded are not called again, and delays continue",
			func(d *downtime) { d.stop(time.Minute) },
			[]string{"create Website default/home: upload #2: success"}},
		"unfinished and edited": {"the edit follows as an update",
			func(d *downtime) { d.stop(time.Minute); d.edit("Only cats") },
			[]string{
				"create Website default/home: upload #2: success", "update Website default/home: publish #1: success",
			}},
		"unfinished and deleted": {"a deletion ends the creation",
			func(d *downtime) { d.stop(time.Minute); d.delete() },
			[]string{"delete Website default/home: close #1: success"}},
		"annotations removed": {"the object is a new one",
			func(d *downtime) { d.stop(2 * time.Hour); d.patch(`{"metadata":{"annotations":null}}`) },
			[]string{
				"create Website default/home: publish #1: success",
				"create Website default/home: upload #1: retry: the disk is full",
				"create Website default/home: upload #2: success",
			}},
		"etcd restored": {"the last-handled configuration is restored with the object: there is no difference",
			func(d *downtime) {
				time.Sleep(2 * time.Hour)
				backup := d.read()
				d.edit("Only cats")
				d.stop(time.Hour)
				d.load(backup)
			},
			[]string{"resume Website default/home: publish #1: success"}},
		"created again from a backup": {"a copy with another uid is a new object",
			func(d *downtime) {
				d.stop(2 * time.Hour)
				backup := d.read()
				d.release()
				d.create(backup)
			},
			[]string{
				"create Website default/home: publish #1: success",
				"create Website default/home: upload #1: retry: the disk is full",
				"create Website default/home: upload #2: success",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDowntime(t)
				tc.events(d)
				second := facadetest.Start(t, newUploader(), facadetest.Against(memapi.Config(d.server)))
				time.Sleep(3 * time.Hour)
				if diff := cmp.Diff(tc.want, texts(second.Calls())); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestUpgrades shows which handlers another version of the program calls for an object of the former version.
func TestUpgrades(t *testing.T) {
	publish := func(_ context.Context, c *Change) error { return nil }
	for name, tc := range map[string]struct {
		reason           string
		firstVersionRuns time.Duration // how long the first version runs
		register         func(websites kopf.Selection[*v1.Website])
		want             []string
		hasFinalizer     bool // the object has the finalizer
	}{
		"a new id for an unfinished creation": {"a handler with another id is another handler", time.Minute,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnCreate("announce", publish)
				websites.OnDelete("close", publish)
			},
			[]string{"create Website default/home: announce #1: success"}, true},
		"a new id with the former one": {"the success of the former id counts", time.Minute,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnCreate("announce", publish, kopf.FormerIDs("publish"))
				websites.OnDelete("close", publish)
			},
			nil, true},
		"a new create handler": {"the object was created before", 2 * time.Hour,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnCreate("announce", publish)
				websites.OnDelete("close", publish)
			},
			nil, true},
		"a new update handler": {"nothing has changed", 2 * time.Hour,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnUpdate("announce", publish)
				websites.OnDelete("close", publish)
			},
			nil, true},
		"a new resume handler": {"each process calls it for each object", 2 * time.Hour,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnResume("announce", publish)
				websites.OnDelete("close", publish)
			},
			[]string{"resume Website default/home: announce #1: success"}, true},
		"no delete handler any more": {"the finalizer is removed", 2 * time.Hour,
			func(websites kopf.Selection[*v1.Website]) { websites.OnCreate("publish", publish) },
			nil, false},
		"event handlers alone": {"the finalizer is removed", 2 * time.Hour,
			func(websites kopf.Selection[*v1.Website]) {
				websites.OnEvent("log", func(context.Context, *kopf.WatchEvent[*v1.Website]) error { return nil })
			},
			[]string{
				"run Website default/home: log #1: success",      // in the list
				"MODIFIED Website default/home: log #1: success", // without the finalizer
			}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDowntime(t)
				d.stop(tc.firstVersionRuns)
				types := runtime.SchemeBuilder{v1.AddToScheme}
				op := kopf.New("websites.example.org", kopf.Settings{AddToScheme: types})
				tc.register(kopf.For(op, &v1.Website{}))
				second := facadetest.Start(t, op, facadetest.Against(memapi.Config(d.server)))
				time.Sleep(3 * time.Hour)
				if diff := cmp.Diff(tc.want, texts(second.Calls())); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
				if held := len(d.read().GetFinalizers()) > 0; held != tc.hasFinalizer {
					t.Errorf("%s: has the finalizer: %t, want %t", tc.reason, held, tc.hasFinalizer)
				}
			})
		})
	}
}

// TestNewDefault shows that a default that the schema gets is an update of each object.
func TestNewDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDowntime(t)
		d.stop(2 * time.Hour)
		definitions, err := memapi.Definitions("crd.yaml")
		d.must(err)
		schema := definitions[0].Spec.Versions[0].Schema.OpenAPIV3Schema
		schema.Properties["spec"].Properties["color"] = apiextensionsv1.JSONSchemaProps{
			Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"red"`)},
		}
		d.must(d.server.Define(definitions...))
		second := facadetest.Start(t, newUploader(), facadetest.Against(memapi.Config(d.server)))
		time.Sleep(time.Hour)
		want := []string{"update Website default/home: publish #1: success"}
		if diff := cmp.Diff(want, texts(second.Calls())); diff != "" {
			t.Errorf("the API server returns the default (-want, +got):\n%s", diff)
		}
	})
}

// TestTwoOperators shows that two operators without a peering object both handle each object.
func TestTwoOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDowntime(t)
		second := facadetest.Start(t, newUploader(), facadetest.Against(memapi.Config(d.server)))
		time.Sleep(3 * time.Hour)
		d.edit("Only cats")
		time.Sleep(time.Hour)
		for _, operator := range []*facadetest.Runner{d.firstVersionRuns, second} {
			const update = "update Website default/home: publish #1: success"
			if calls := texts(operator.Calls()); !slices.Contains(calls, update) {
				t.Errorf("want %q, got %q", update, calls)
			}
		}
	})
}

func texts(calls []facadetest.HandlerCall) (lines []string) {
	for _, call := range calls {
		lines = append(lines, call.String())
	}
	return lines
}

// downtime is a cluster with one website that an operator handles, until it is stopped.
type downtime struct {
	t                testing.TB
	cluster          client.Client
	server           *memapi.Server
	firstVersionRuns *facadetest.Runner
}

func newDowntime(t testing.TB) *downtime {
	t.Helper()
	d := &downtime{t: t}
	d.cluster, d.server = newCluster(t)
	d.firstVersionRuns = facadetest.Start(t, newUploader(), facadetest.Against(memapi.Config(d.server)))
	d.firstVersionRuns.Ready()
	d.must(d.cluster.Create(t.Context(), newWebsite()))
	return d
}

func (d *downtime) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// stop stops the first operator when it has run for some time.
func (d *downtime) stop(after time.Duration) {
	d.t.Helper()
	time.Sleep(after)
	d.must(d.firstVersionRuns.Stop())
}

func (d *downtime) patch(patch string) {
	d.t.Helper()
	d.must(d.cluster.Patch(d.t.Context(), newWebsite(), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

func (d *downtime) edit(title string) { d.patch(`{"spec":{"title":"` + title + `"}}`) }

func (d *downtime) delete() {
	d.t.Helper()
	d.must(d.cluster.Delete(d.t.Context(), newWebsite()))
}

// release deletes the website at once: without its finalizer, and so without the delete handlers.
func (d *downtime) release() {
	d.t.Helper()
	d.patch(`{"metadata":{"finalizers":null}}`)
	d.delete()
}

func (d *downtime) patchStatus(patch string) {
	d.t.Helper()
	raw := client.RawPatch("application/merge-patch+json", []byte(patch))
	d.must(d.cluster.Status().Patch(d.t.Context(), newWebsite(), raw))
}

func (d *downtime) read() *unstructured.Unstructured {
	d.t.Helper()
	home := &unstructured.Unstructured{}
	home.SetAPIVersion("websites.example.org/v1")
	home.SetKind("Website")
	d.must(d.cluster.Get(d.t.Context(), client.ObjectKeyFromObject(newWebsite()), home))
	return home
}

// load restores a former state, as a backup of etcd does: with the same uid.
func (d *downtime) load(home *unstructured.Unstructured) {
	d.t.Helper()
	d.must(d.server.Load(home.Object))
}

// create creates an object like a former one, as tools for backups of objects do.
func (d *downtime) create(home *unstructured.Unstructured) {
	d.t.Helper()
	home.SetUID("")
	home.SetResourceVersion("")
	d.must(d.cluster.Create(d.t.Context(), home))
}
