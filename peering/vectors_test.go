package peering_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

// startTimestamp is the time at which the clocks of the cases begin.
const startTimestamp = "2024-05-06T07:08:09.123456+00:00"

// gate records at once whether it is closed.
type gate struct{ closed atomic.Bool }

func (g *gate) Set(closed bool) { g.closed.Store(closed) }

func (*gate) AllowWritesUntil(time.Time) {}

// memberFixture is one member with an API server in memory.
type memberFixture struct {
	server       *memapi.Server
	resource     memapi.Resource
	connection   *memapi.Connection
	startTime    time.Time
	name         string
	sentRequests []any // the requests with the time since the beginning
	gate         gate
	member       *peering.Membership
}

// newMemberFixture returns a bench at the time of the case, by virtual time.
func newMemberFixture(t *testing.T, input vectors.Fields, m peering.Member) *memberFixture {
	t.Helper()
	return newMemberFixtureBefore(t.Context(), t, 0, input, m)
}

// newMemberFixtureBefore returns a bench at a time before that of the case.
func newMemberFixtureBefore(
	ctx context.Context, t *testing.T, before time.Duration, input vectors.Fields, m peering.Member,
) *memberFixture {
	t.Helper()
	began, err := progress.ParseTimestamp(input.Text("now", startTimestamp))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(began.Add(-before)))
	b := &memberFixture{server: memapi.New(), resource: resourceOf(t, input), startTime: began}
	b.server.Install(b.resource)
	b.connection = b.server.Connect()
	b.connection.Before = func(_ context.Context, r memapi.Request) error { b.send(t, r); return nil }
	api, err := memapi.NewClient(b.connection, b.resource)
	if err != nil {
		t.Fatal(err)
	}
	m.Name = input.Mapping("settings").Text("peering.name", "default")
	b.name = m.Name
	b.member = m.JoinObject(ctx, b.storedObject(api, input.Text("namespace", ""), m.Name), &b.gate)
	return b
}

func (b *memberFixture) storedObject(api client.Client, namespace, name string) peering.StoredObject {
	body := map[string]any{"metadata": map[string]any{"name": name}}
	if b.resource.Namespaced {
		body["metadata"] = map[string]any{"name": name, "namespace": namespace}
	}
	b.server.Put(b.resource, body)
	return b.existingObject(api, namespace, name)
}

func (b *memberFixture) existingObject(api client.Client, namespace, name string) peering.StoredObject {
	return peering.StoredObject{
		Client: api, Namespace: namespace, Name: name, HasStatus: b.resource.StatusSubresource,
		Kind: schema.GroupVersionKind{Group: b.resource.Group, Version: b.resource.Version, Kind: b.resource.Kind},
	}
}

func (b *memberFixture) send(t *testing.T, r memapi.Request) {
	var payload any
	if err := json.Unmarshal(r.Body, &payload); err != nil {
		t.Errorf("a request without JSON: %v", err)
	}
	b.sentRequests = append(b.sentRequests, map[string]any{
		"t": b.elapsedSeconds(), "url": r.Path, "type": r.ContentType, "payload": payload,
	})
}

func (b *memberFixture) elapsedSeconds() float64 {
	return time.Since(b.startTime).Round(time.Microsecond).Seconds()
}

// resourceOf returns the kind of peering objects of a case.
func resourceOf(t *testing.T, input vectors.Fields) memapi.Resource {
	r := memapi.Resource{
		Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering",
	}
	if input["resource"] == nil {
		return r
	}
	own := vectors.Known(t, input["resource"], "group", "version", "plural", "namespaced", "subresources")
	r.Group, r.Version = own.Text("group", r.Group), own.Text("version", r.Version)
	r.Plural = own.Text("plural", r.Plural)
	r.Namespaced = own.Flag("namespaced")
	for _, name := range own.List("subresources") {
		r.StatusSubresource = r.StatusSubresource || name == "status"
	}
	return r
}

func TestVectorsPeering(t *testing.T) {
	vectors.Run(t, "peering", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "identity", "namespace", "object", "paused_before", "priority", "resource", "settings",
			"type", "wakeup_at")
		vectors.Bubble(t, func(t *testing.T) {
			self := peering.Self{Identity: input.Text("identity", "me"),
				Priority: integerField(t, input, "priority", 0)}
			b := newMemberFixtureBefore(t.Context(), t, 2*time.Second, input,
				peering.Member{Self: self, KopfRules: true})
			b.publishRecord(t, input.Flag("paused_before"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if at := vectors.Number(t, input, "wakeup_at"); at != nil {
				time.AfterFunc(time.Duration(*at*float64(time.Second)), cancel)
			}
			expected, _ := asDecodedJSON(t, want.Value).(map[string]any)
			end, _ := expected["finished_at"].(float64)
			var atOnce, last atomic.Bool
			time.AfterFunc(time.Millisecond, func() { atOnce.Store(b.gate.closed.Load()) })
			// When the first blocker has expired, Kopf waits for an event, and we decide at once.
			time.AfterFunc(max(1, time.Duration(end*1e9)-1), func() { last.Store(b.gate.closed.Load()) })
			if err := b.member.React(ctx, input.Object("object")); err != nil {
				t.Fatal(err)
			}
			ended := b.elapsedSeconds()
			time.Sleep(time.Second)
			got := map[string]any{
				"paused": last.Load(), "paused_immediately": atOnce.Load(), "requests": b.requests(t),
				"finished_at": ended,
			}
			expected["requests"] = withoutRemoval(self.Identity, expected["requests"].([]any))
			if delta := cmp.Diff(any(expected), asDecodedJSON(t, got)); delta != "" {
				t.Errorf("-want, +got:\n%s", delta)
			}
		})
	})
}

// publishRecord publishes the record and waits for the time of the case. A peer that is not in the case can pause the
// operator.
func (b *memberFixture) publishRecord(t *testing.T, paused bool) {
	t.Helper()
	if err := b.member.Touch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if paused {
		b.member.ObserveObject(map[string]any{"metadata": map[string]any{"name": b.name}, "status": map[string]any{
			"blocker": map[string]any{"priority": int64(1 << 20), "lifetime": int64(3600)},
		}})
	}
	if time.Sleep(time.Until(b.startTime)); b.gate.closed.Load() != paused {
		t.Fatalf("before the case, the operator is paused: %t", !paused)
	}
	b.sentRequests = nil
}

// withoutRemoval drops the removal of the expired own record, which our operators write again: D-peering-gone.
func withoutRemoval(identity string, requests []any) []any {
	return slices.DeleteFunc(requests, func(request any) bool {
		status := request.(map[string]any)["payload"].(map[string]any)["status"].(map[string]any)
		own, found := status[identity]
		return found && own == nil
	})
}

// requests returns the requests without the fields that only our records have.
func (b *memberFixture) requests(t *testing.T) []any {
	t.Helper()
	for _, one := range b.sentRequests {
		for _, record := range one.(map[string]any)["payload"].(map[string]any)["status"].(map[string]any) {
			fields, ok := record.(map[string]any)
			if !ok {
				continue
			}
			if fields["runtime"] != peering.Runtime || fields["busy"] == nil {
				t.Errorf("the record %v does not have our fields", fields)
			}
			delete(fields, "runtime")
			delete(fields, "busy")
		}
	}
	return append([]any{}, b.sentRequests...)
}

func TestVectorsPeeringRecord(t *testing.T) {
	vectors.Run(t, "peering_record", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "identity", "lifetime", "namespace", "now", "resource", "settings")
		vectors.Bubble(t, func(t *testing.T) {
			settings := input.Mapping("settings")
			lifetime := integerField(t, input, "lifetime", integerField(t, settings, "peering.lifetime", 60))
			m := peering.Member{
				Self: peering.Self{
					Identity: input.Text("identity", "me"), Priority: integerField(t, settings, "peering.priority", 0),
				},
				Lifetime: time.Duration(lifetime) * time.Second, KopfRules: true,
			}
			b := newMemberFixture(t, input, m)
			act := b.member.Touch
			if lifetime == 0 {
				act = b.member.Leave
			}
			if err := act(t.Context()); err != nil {
				t.Fatal(err)
			}
			requests := b.requests(t)
			for _, one := range requests {
				delete(one.(map[string]any), "t")
			}
			if delta := cmp.Diff(asDecodedJSON(t, want.Value),
				asDecodedJSON(t, map[string]any{"requests": requests})); delta != "" {
				t.Errorf("-want, +got:\n%s", delta)
			}
		})
	})
}

func TestVectorsPeeringKeepalive(t *testing.T) {
	vectors.Run(t, "peering_keepalive", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "jitter", "lifetime", "run_for")
		vectors.Bubble(t, func(t *testing.T) {
			jitter, lifetime := integerField(t, input, "jitter", 0), integerField(t, input, "lifetime", 0)
			b := newMemberFixture(t, input, peering.Member{
				Self: peering.Self{Identity: "me"}, Lifetime: time.Duration(lifetime) * time.Second, KopfRules: true,
				Jitter: func() time.Duration { return time.Duration(jitter) * time.Second },
			})
			runs := time.Duration(*vectors.Number(t, input, "run_for") * float64(time.Second))
			// An end at the time of a touch comes before it.
			ctx, cancel := context.WithTimeout(t.Context(), runs-time.Nanosecond)
			defer cancel()
			b.member.Run(ctx)
			touches := []any{}
			// The last record but one reports that the operator is idle: D-peering-rest.
			for i, one := range slices.Delete(b.sentRequests, len(b.sentRequests)-2, len(b.sentRequests)-1) {
				sent, _ := one.(map[string]any)
				status := sent["payload"].(map[string]any)["status"].(map[string]any)
				touch := map[string]any{"t": sent["t"], "lifetime": nil}
				if status["me"] == nil {
					touch["lifetime"] = 0
				}
				// A record of 2 seconds, which the settings do not allow, counts as lost when it is renewed. It is
				// written again then, because it reports another state.
				if i > 0 && lifetime < 3 && cmp.Equal(touches[len(touches)-1], any(touch)) {
					continue
				}
				touches = append(touches, touch)
			}
			if delta := cmp.Diff(asDecodedJSON(t, want.Value),
				asDecodedJSON(t, map[string]any{"touches": touches})); delta != "" {
				t.Errorf("-want, +got:\n%s", delta)
			}
		})
	})
}

func TestVectorsPeeringIdentity(t *testing.T) {
	vectors.Run(t, "peering_identity", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		vectors.Known(t, input, "host", "hostname", "lookup", "manual", "now", "pod", "random", "user")
		got := map[string]any{}
		if name := input.Text("hostname", ""); name != "" {
			got["hostname"] = peering.Hostname(name, hostNames(input.List("lookup")))
		} else {
			started, err := progress.ParseTimestamp(input.Text("now", "2020-12-31T23:59:59+00:00"))
			if err != nil {
				t.Fatal(err)
			}
			person := peering.ProcessInfo{
				User: input.Text("user", ""), Host: input.Text("host", ""), Random: input.Text("random", ""),
				Started: started,
			}
			got["identity"] = peering.OperatorIdentity(input.Text("pod", ""), person, input.Flag("manual"))
		}
		if delta := cmp.Diff(want.Value, any(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}

// hostNames returns the names of a host in a lookup: the requested one and its aliases.
func hostNames(lookup []any) (names []string) {
	if len(lookup) == 0 {
		return nil
	}
	aliases, _ := lookup[1].([]any)
	for _, one := range append([]any{lookup[0]}, aliases...) {
		name, _ := one.(string)
		names = append(names, name)
	}
	return names
}

// integerField returns a whole number from the fields.
func integerField(t *testing.T, f vectors.Fields, key string, otherwise int) int {
	t.Helper()
	if value := vectors.Number(t, f, key); value != nil {
		return int(*value)
	}
	return otherwise
}

// asDecodedJSON returns a value as JSON decodes it.
func asDecodedJSON(t *testing.T, value any) (decoded any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
