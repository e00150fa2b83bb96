package kopf_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/draining"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

var drainLeases = memapi.Resource{
	Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Plural: "leases", Namespaced: true,
}

// The name has a digest of the served namespaces: here, that of the whole cluster.
const drainLease = "drain.example.com-684888c0"

// withPeering makes the operator join its own peering, whose name is that of the operator.
func withPeering(one *draining.Drain) {
	one.Peering.Standalone = false
	one.Confirm = func(reason string) error { return errors.New(reason) }
}

// TestDrainOfARunningOperator shows that a drain refuses to work while a process of the operator may be running, and
// that nothing is changed then.
func TestDrainOfARunningOperator(t *testing.T) {
	now := func(seconds int) string {
		return time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	record := func(age int, runtime string) map[string]any {
		return map[string]any{"lifetime": int64(60), "lastseen": now(-age), "runtime": runtime, "busy": int64(0)}
	}
	lease := func(age int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": drainLease, "namespace": "ops"},
			"spec": map[string]any{
				"holderIdentity": "pod", "renewTime": now(-age), "leaseDurationSeconds": int64(15),
			},
		}
	}
	for name, c := range map[string]struct {
		reason string
		set    func(d *drained)
		err    string
	}{
		"unknown": {"without a peering and a Lease, the user must confirm", func(*drained) {},
			"there is neither a peering object nor a Lease"},
		"live peer": {"a live peer is an error", func(d *drained) {
			d.api.Put(peerings, map[string]any{"metadata": map[string]any{"name": "drain.example.com"},
				"status": map[string]any{"pod": record(10, "kopf-runtime")}})
		}, `operators of the peering "drain.example.com" are running: ["pod"]`},
		"peer of Kopf": {"an operator of Kopf is not this one without AsKopf", func(d *drained) {
			d.api.Put(peerings, map[string]any{"metadata": map[string]any{"name": "drain.example.com"},
				"status": map[string]any{"pod": record(10, "")}})
		}, ""},
		"held Lease": {"a Lease that is held is an error", func(d *drained) { d.api.Put(drainLeases, lease(10)) },
			`the operator is running: Lease ops/` + drainLease + ` is held by "pod"`},
		"expired Lease": {"an expired Lease is not an error",
			func(d *drained) { d.api.Put(drainLeases, lease(20)) }, ""},
		"other Lease": {"the Lease of another program says nothing", func(d *drained) {
			other := lease(10)
			other["metadata"] = map[string]any{"name": "drain.example.com", "namespace": "ops"}
			d.api.Put(drainLeases, other)
		}, "there is neither a peering object nor a Lease"},
	} {
		t.Run(name, func(t *testing.T) {
			inDrained(t, kopf.Settings{}, func(d *drained) {
				d.api.Install(peerings)
				d.api.Install(drainLeases)
				c.set(d)
				before := d.dump()
				report, err := d.tryDrain(nil, withPeering)
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("%s: want %q, got %v", c.reason, c.err, err)
					}
					if diff := cmp.Diff(before, d.dump()); diff != "" {
						t.Errorf("nothing is changed (-want, +got):\n%s", diff)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", c.reason, err)
				}
				requireItems(t, report)
			})
		})
	}
}

// TestDrainOfUnreadableLeases shows that the user must confirm that the operator is stopped if its Lease may not be
// read.
func TestDrainOfUnreadableLeases(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		way := d.api.Connect()
		way.Before = func(_ context.Context, r memapi.Request) error {
			if strings.Contains(r.Path, "/leases") {
				return memapi.NewRefusal(http.StatusForbidden, "reason", "Forbidden")
			}
			return nil
		}
		d.api.Install(drainLeases)
		_, err := d.tryDrain(way, withPeering)
		if err == nil || !strings.Contains(err.Error(), "its Lease cannot be read") {
			t.Errorf("the error names the reason: got %v", err)
		}
	})
}

// TestDrainOfRecords shows that the drain removes the expired records of the operator in its own peering, and its
// Lease, and leaves the records of others.
func TestDrainOfRecords(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		d.api.Install(peerings)
		d.api.Install(drainLeases)
		dead := func(runtime string) map[string]any {
			return map[string]any{"lifetime": int64(60), "lastseen": "2000-01-01T00:00:00+00:00", "runtime": runtime}
		}
		put := func(name string, records map[string]any) {
			d.api.Put(peerings, map[string]any{"metadata": map[string]any{"name": name}, "status": records})
		}
		put("drain.example.com", map[string]any{
			"dead": dead("kopf-runtime"), "kopf": dead(""), "drain.example.com/drain": dead(""), "broken": "text",
		})
		put("shared", map[string]any{"dead": dead("kopf-runtime"), "mine": dead("")})
		d.api.Put(drainLeases, map[string]any{"metadata": map[string]any{"name": drainLease, "namespace": "ops"}})
		report := d.drain(nil, func(one *draining.Drain) { withPeering(one); one.Check = true })
		for _, want := range []string{`record of "dead"`, "Lease ops/" + drainLease} {
			if text := reportText(t, report); !strings.Contains(text, want) {
				t.Errorf("a check lists the records and the Lease: want %q in %s", want, text)
			}
		}
		requireItems(t, d.drain(nil, withPeering))
		requireItems(t, d.drain(nil, func(one *draining.Drain) {
			withPeering(one)
			one.Peering.Name, one.Peering.Identity = "shared", "mine"
		}))
		for name, want := range map[string]map[string]any{
			"drain.example.com": {"kopf": dead(""), "broken": "text"}, "shared": {"dead": dead("kopf-runtime")},
		} {
			if diff := cmp.Diff(any(want), d.api.Object(peerings, "", name)["status"]); diff != "" {
				t.Errorf("%s: records of others stay (-want, +got):\n%s", name, diff)
			}
		}
		if got := d.api.ObjectsOf(drainLeases); len(got) > 0 {
			t.Errorf("the Lease is deleted: got %v", got)
		}
	})
}

// TestDrainOfSharding shows that a drain refuses to work while a replica shares the objects, and removes all Leases of
// dead ones, and none of another operator.
func TestDrainOfSharding(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		d.api.Install(drainLeases)
		put := func(layout, rest, holder string, age time.Duration) {
			label, group, _ := strings.Cut(sharding.LeaseSelector(layout), "=")
			d.api.Put(drainLeases, map[string]any{
				"metadata": map[string]any{
					"name": layout + rest, "namespace": "ops", "labels": map[string]any{label: group},
				},
				"spec": map[string]any{
					"holderIdentity": holder, "leaseDurationSeconds": int64(15),
					"renewTime": time.Now().Add(-age).UTC().Format("2006-01-02T15:04:05.000000Z07:00"),
				},
			})
		}
		for rest, holder := range map[string]string{"": "shards-2", "-range-2-0": "pod", "-range-2-1": "dead"} {
			put(drainLease, rest, holder, time.Minute)
			put("other.example.com-684888c0", rest, holder, time.Minute)
		}
		put(drainLease, "", "shards-2", time.Second)
		put(drainLease, "-replica-5ebe2294ecd0", "pod", time.Second)
		_, err := d.tryDrain(nil, withPeering)
		if err == nil || !strings.Contains(err.Error(), `-replica-5ebe2294ecd0 is held by "pod"`) {
			t.Errorf("a live replica is an error that names it, got %v", err)
		}
		if got := len(d.api.ObjectsOf(drainLeases)); got != 7 {
			t.Errorf("nothing is changed: there are %d Leases, want 7", got)
		}
		put(drainLease, "", "shards-2", time.Minute)
		put(drainLease, "-replica-5ebe2294ecd0", "pod", time.Minute)
		requireItems(t, d.drain(nil, withPeering))
		for _, one := range d.api.ObjectsOf(drainLeases) {
			name, _ := one["metadata"].(map[string]any)["name"].(string)
			if !strings.HasPrefix(name, "other.") {
				t.Errorf("the Lease %s is left", name)
			}
		}
		if got := len(d.api.ObjectsOf(drainLeases)); got != 3 {
			t.Errorf("%d Leases of the other operator are left, want 3", got)
		}
	})
}

// reportText returns the report as text.
func reportText(t *testing.T, report *draining.DrainReport) string {
	t.Helper()
	var out strings.Builder
	if err := report.Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestDrainWithFreeze shows that a running operator is paused during the drain and after it, so that it stores nothing
// again, and that the next drain removes the record of the pause.
func TestDrainWithFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drained{t: t, api: memapi.New(), calls: &journal{}}
		d.api.Install(houses)
		d.api.Install(peerings)
		d.api.Put(peerings, map[string]any{"metadata": map[string]any{"name": "drain.example.com"}})
		one := plainHouse("one")
		one["metadata"].(map[string]any)["uid"] = "u1" //nolint:forcetypeassert // it is made above
		d.api.Put(houses, one)
		d.before = d.dump()
		delete(d.before, "ClusterKopfPeering drain.example.com")
		// With an identity, the operator does not look up its host, which is not possible on virtual time.
		settings := kopf.Settings{Peering: kopf.PeeringSettings{Identity: "drained", Priority: 200}}
		op := newDrainOperatorWith(settings, d.calls)
		r := facadetest.Start(t, op, facadetest.Against(memapi.Config(d.api)))
		r.Ready()
		time.Sleep(time.Minute)
		if _, err := d.tryDrain(nil, withPeering); err == nil {
			t.Error("a running operator is an error")
		}
		d.api.Edit(peerings, "", "drain.example.com", func(peering map[string]any) {
			//nolint:forcetypeassert // the operator has a record
			peering["status"].(map[string]any)["former"] = map[string]any{
				"lifetime": int64(60), "lastseen": "1999-01-01T00:00:00+00:00", "runtime": "kopf-runtime",
			}
		})
		report := d.drain(nil, func(one *draining.Drain) { withPeering(one); one.Freeze = true })
		requireItems(t, report)
		left, _ := d.api.Object(peerings, "", "drain.example.com")["status"].(map[string]any)
		if left["former"] != nil || left["drain.example.com/drain"] == nil {
			t.Errorf("expired records are removed, and that of the pause stays: got %v", left)
		}
		const hint = "resume -P drain.example.com --id drain.example.com/drain"
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], hint) {
			t.Errorf("the report says how the operators continue: got %v", report.Notes)
		}
		time.Sleep(10 * time.Minute)
		if len(d.house("one").GetAnnotations()) > 0 {
			t.Errorf("the operator stays paused: got %v", d.house("one"))
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		requireItems(t, d.drain(nil, withPeering))
		peering := d.api.Object(peerings, "", "drain.example.com")
		if records, _ := peering["status"].(map[string]any); len(records) > 0 {
			t.Errorf("the next drain removes the record of the pause: got %v", records)
		}
	})
}

// TestDrainOfWebhooks shows that webhook entries are withdrawn before objects are written: those of a stopped operator
// can block all writes.
func TestDrainOfWebhooks(t *testing.T) {
	inDrained(t, kopf.Settings{}, func(d *drained) {
		kind := memapi.Resource{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
			Plural: "validatingwebhookconfigurations", Plain: true,
		}
		d.api.Install(kind)
		d.api.Put(kind, map[string]any{"metadata": map[string]any{
			"name": "managed", "uid": "w", "annotations": map[string]any{"drain.example.com/certificates": "a"},
		}})
		managed := func(one *draining.Drain) { one.Webhooks = "managed" }
		report := d.drain(nil, func(one *draining.Drain) { managed(one); one.Check = true })
		if text := reportText(t, report); !strings.Contains(text, "ValidatingWebhookConfiguration managed") {
			t.Errorf("a check lists the webhook configuration: got %s", text)
		}
		way := d.api.Connect()
		requireItems(t, d.drain(way, managed))
		if got := d.api.ObjectsOf(kind); len(got) > 0 {
			t.Errorf("an object that is empty then is deleted: got %v", got)
		}
		for _, r := range way.Requests() {
			switch {
			case r.Verb == "delete" && strings.HasSuffix(r.Path, "/managed"):
				return
			case r.Verb == "patch" && strings.Contains(r.Path, "/houses/"):
				t.Fatal("webhooks are withdrawn before objects are written")
			}
		}
	})
}
