package peering_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

var (
	clusterPeeringResource = memapi.Resource{
		Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering",
		StatusSubresource: true,
	}
	legacyPeeringResource = memapi.Resource{
		Group: "zalando.org", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering",
	}
	namespacedPeeringResource = memapi.Resource{
		Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true,
	}
)

// attendingOperator is an operator with attendance at a peering, and its gate.
type attendingOperator struct {
	connection *memapi.Connection
	attendance *peering.Attendance
	stop       func()

	isForbidden atomic.Bool

	mu            sync.Mutex
	closed        bool
	openCount     int
	writableUntil time.Time
	log           bytes.Buffer
}

func (o *attendingOperator) Set(closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed && !closed {
		o.openCount++
	}
	o.closed = closed
}

func (o *attendingOperator) AllowWritesUntil(end time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writableUntil = end
}

func (o *attendingOperator) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log.Write(p)
}

// startAttendance starts an operator with attendance in the namespaces, or in the cluster.
func startAttendance(t *testing.T, server *memapi.Server, m peering.Member, namespaces ...string) *attendingOperator {
	t.Helper()
	o := &attendingOperator{connection: server.Connect()}
	o.connection.Before = func(context.Context, memapi.Request) error {
		if o.isForbidden.Load() {
			return memapi.NewRefusal(http.StatusForbidden)
		}
		return nil
	}
	m.Name = "default"
	if m.Self.Identity == "" {
		m.Self.Identity = "me"
	}
	client := &http.Client{Transport: o.connection}
	a, err := peering.NewAttendance(memapi.Config(o.connection), client, m, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(namespaces) > 0 {
		a.JoinNamespaces(fixedScope(namespaces))
	}
	o.attendance = a
	ctx, cancel := context.WithCancel(t.Context())
	ctx = logf.IntoContext(ctx, logr.FromSlogHandler(slog.NewTextHandler(o, nil)))
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	o.stop = func() { cancel(); <-done }
	return o
}

// fixedScope is a scope of namespaces that never changes.
type fixedScope []string

func (f fixedScope) Current() (names []string, changed <-chan struct{}) { return f, nil }

// requireState checks whether the operator acts, and that each message was logged once.
func (o *attendingOperator) requireState(t *testing.T, when string, acts bool, messages ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed == acts {
		t.Errorf("%s: want the operator to act: %t\n%s", when, acts, o.log.String())
	}
	for _, message := range messages {
		if n := strings.Count(o.log.String(), message); n != 1 {
			t.Errorf("%s: want one line, got %d with %q in the log:\n%s", when, n, message, o.log.String())
		}
	}
}

// createPeering creates a peering object with the given records.
func createPeering(server *memapi.Server, r memapi.Resource, namespace string, status map[string]any) {
	object := map[string]any{"metadata": map[string]any{"name": "default"}, "status": status}
	if namespace != "" {
		object["metadata"] = map[string]any{"name": "default", "namespace": namespace}
	}
	server.Put(r, object)
}

func recordsOf(server *memapi.Server, r memapi.Resource, namespace string) map[string]any {
	status, _ := server.Object(r, namespace, "default")["status"].(map[string]any)
	return status
}

// peerStatus returns the status with the record of a peer that runs Kopf.
func peerStatus(priority any) map[string]any {
	return map[string]any{"him": map[string]any{
		"priority": priority, "lifetime": int64(3600), "lastseen": time.Now().UTC().Format(time.RFC3339),
	}}
}

// TestMissingObjects shows that missing kinds and objects pause the operator only if peering is mandatory, and that
// it notices them as soon as they exist.
func TestMissingObjects(t *testing.T) {
	t.Parallel()
	for _, mandatory := range []bool{false, true} {
		t.Run(fmt.Sprint("mandatory ", mandatory), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				o := startAttendance(t, server, peering.Member{Mandatory: mandatory})
				defer o.stop()
				time.Sleep(time.Hour)
				if o.requireState(t, "without kinds", !mandatory); mandatory {
					o.requireState(t, "without kinds", false, "Waiting for a kind of peering objects")
				}
				server.Install(clusterPeeringResource)
				time.Sleep(2 * time.Minute)
				if o.requireState(t, "without an object", !mandatory); mandatory {
					o.requireState(t, "without an object", false, "Waiting for a peering that can be used")
				}
				if n := len(o.connection.Requests()); n > 60 {
					t.Errorf("want at most 60 requests in two minutes, got %d", n)
				}
				createPeering(server, clusterPeeringResource, "", peerStatus(int64(9)))
				time.Sleep(time.Minute)
				o.requireState(t, "with a peer of a higher priority", false, "Pausing operations in favour of peers")
				createPeering(server, clusterPeeringResource, "", nil)
				time.Sleep(time.Minute)
				o.requireState(t, "without a peer", true, "Resuming operations")
				if recordsOf(server, clusterPeeringResource, "")["me"] == nil {
					t.Error("the operator has not written its record")
				}
			})
		})
	}
}

// TestRemovedObject shows that the removal of a peering object changes nothing, unless peering is mandatory, until
// the records of its peers end. By Kopf's rules, they never end. The requests for the object are rare:
// D-peering-absent.
func TestRemovedObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mandatory, pausing, rules, acts, later bool
		message                                string
	}{
		"acting":    {false, false, false, true, true, "acts without regard to others"},
		"elected":   {false, false, false, true, true, "a Lease decides which process acts"},
		"paused":    {false, true, false, false, true, "or the records of its peers have ended"},
		"rules":     {false, true, true, false, false, "the operator stays paused"},
		"mandatory": {true, false, false, false, false, "Waiting for a peering that can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.Install(clusterPeeringResource)
				status := map[string]any(nil)
				if c.pausing {
					status = peerStatus(int64(9))
				}
				createPeering(server, clusterPeeringResource, "", status)
				o := startAttendance(t, server, peering.Member{
					Mandatory: c.mandatory, KopfRules: c.rules, LeaseDecides: name == "elected",
				})
				defer o.stop()
				time.Sleep(time.Minute)
				o.requireState(t, "before the removal of the object", !c.pausing)
				server.Discard(clusterPeeringResource, "", "default")
				o.connection.DrainRequests()
				time.Sleep(10 * time.Minute)
				o.requireState(t, "after the removal of the object", c.acts, c.message)
				if n := len(o.connection.Requests()); n > 100 {
					t.Errorf("%d requests in ten minutes", n)
				}
				time.Sleep(time.Hour)
				o.requireState(t, "after the end of the records", c.later)
				createPeering(server, clusterPeeringResource, "", nil)
				time.Sleep(time.Minute)
				o.requireState(t, "after the object was created again", true)
			})
		})
	}
}

// TestOddRecords shows that records that are malformed or from the future are logged and handled as defined:
// D-peering-malformed, D-peering-clock.
func TestOddRecords(t *testing.T) {
	t.Parallel()
	ahead := peerStatus(int64(9))
	ahead["him"].(map[string]any)["lastseen"] = "2345-01-01T00:00:00Z"
	ours := map[string]any{"him": map[string]any{
		"priority": int64(9), "lifetime": int64(60), "lastseen": "2345-01-01T00:00:00Z", "runtime": "x",
		"busy": int64(1),
	}}
	for name, c := range map[string]struct {
		reason  string
		status  any
		acts    bool
		message string
	}{
		"text": {"a status that is a text counts as empty", "x", true, ""},
		"priority": {"a record with a malformed priority does not pause the operator",
			peerStatus("high"), true, "field priority: high is not a"},
		"future": {"a record of Kopf from the future pauses the operator", ahead, false, "Pausing operations"},
		"future ours": {"a silent peer of ours counts as dead, even with a time in the future",
			ours, true, "Resuming operations"},
		"own": {"a malformed record of the operator itself is overwritten", map[string]any{"me": "here"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				server.Install(clusterPeeringResource)
				server.Put(clusterPeeringResource, map[string]any{
					"metadata": map[string]any{"name": "default"}, "status": c.status,
				})
				o := startAttendance(t, server, peering.Member{})
				defer o.stop()
				time.Sleep(5 * time.Minute)
				if o.requireState(t, c.reason, c.acts); c.message != "" {
					o.requireState(t, c.reason, c.acts, c.message)
				}
				if _, ok := recordsOf(server, clusterPeeringResource, "")["me"].(map[string]any); !ok {
					t.Error("the operator has not written its record")
				}
			})
		})
	}
}

// TestScopes shows that the records of both groups and of all namespaces count: one conflict pauses the operator.
func TestScopes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		for _, r := range []memapi.Resource{clusterPeeringResource, legacyPeeringResource, namespacedPeeringResource} {
			server.Install(r)
		}
		createPeering(server, clusterPeeringResource, "", nil)
		createPeering(server, legacyPeeringResource, "", peerStatus(int64(9)))
		createPeering(server, namespacedPeeringResource, "a", nil)
		createPeering(server, namespacedPeeringResource, "b", peerStatus(int64(9)))
		whole := startAttendance(t, server, peering.Member{Self: peering.Self{Identity: "whole"}})
		both := startAttendance(t, server, peering.Member{Self: peering.Self{Identity: "both"}}, "a", "b")
		some := startAttendance(t, server, peering.Member{Self: peering.Self{Identity: "some"}}, "a", "c")
		time.Sleep(time.Minute)
		whole.requireState(t, "with a conflict in the former group", false)
		both.requireState(t, "with a conflict in one namespace", false)
		some.requireState(t, "with a paused operator of the same priority", false)
		both.stop()
		time.Sleep(time.Minute)
		some.requireState(t, "without conflicts", true)
		if all := recordsOf(server, namespacedPeeringResource, "a"); len(all) != 1 || all["some"] == nil {
			t.Errorf("the records are %v", all)
		}
		whole.stop()
		some.stop()
		if all := recordsOf(server, clusterPeeringResource, ""); len(all) != 0 {
			t.Errorf("the operator left records: %v", all)
		}
	})
}

// TestForbidden shows that an operator without permission acts alone, unless peering is mandatory, and that it
// retries rarely.
func TestForbidden(t *testing.T) {
	t.Parallel()
	for _, mandatory := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := memapi.New()
			server.Install(clusterPeeringResource)
			createPeering(server, clusterPeeringResource, "", nil)
			o := startAttendance(t, server, peering.Member{Mandatory: mandatory})
			defer o.stop()
			o.isForbidden.Store(true)
			time.Sleep(10 * time.Minute)
			o.requireState(t, "without permission", !mandatory, "Cannot watch the peering object")
			if n := len(o.connection.Requests()); n > 100 {
				t.Errorf("%d requests in ten minutes", n)
			}
		})
	}
}

// TestDroppedRecords shows that a kind whose schema drops the records counts as missing.
func TestDroppedRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, strict := memapi.New(), clusterPeeringResource
		strict.StatusFields = []string{"conditions"}
		server.Install(strict)
		createPeering(server, strict, "", nil)
		o := startAttendance(t, server, peering.Member{Mandatory: true})
		defer o.stop()
		time.Sleep(10 * time.Minute)
		o.requireState(t, "with records that the schema drops", false, "x-kubernetes-preserve-unknown-fields")
		if n := len(o.connection.Requests()); n > 100 {
			t.Errorf("%d requests in ten minutes", n)
		}
	})
}

// TestPeers shows that Peers returns the records of all namespaces, including the operator's own, without requests.
func TestPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Install(namespacedPeeringResource)
		createPeering(server, namespacedPeeringResource, "a", peerStatus(int64(9)))
		createPeering(server, namespacedPeeringResource, "b", nil)
		began := time.Now().UTC()
		o := startAttendance(t, server, peering.Member{Self: peering.Self{Priority: 3}}, "a", "b")
		time.Sleep(10 * time.Second)
		o.connection.DrainRequests()
		var got []string
		for _, p := range o.attendance.KnownPeers() {
			got = append(got, fmt.Sprintf("%s/%s %d %t", p.Namespace, p.Identity, p.Priority, p.IsOwn))
			good := p.LastSeen.Equal(began) && p.Until.Equal(began.Add(time.Hour)) && p.Busy == nil
			if p.Identity == "him" && !good {
				t.Errorf("the record of the peer is returned as %+v", p)
			}
		}
		want := "a/him 9 false, a/me 3 true, b/me 3 true"
		if all := strings.Join(got, ", "); all != want || len(o.connection.Requests()) > 0 {
			t.Errorf("want %s\ngot  %s, by %d requests", want, all, len(o.connection.Requests()))
		}
		o.stop()
		if all := o.attendance.KnownPeers(); len(all) != 0 {
			t.Errorf("Peers returns records after the end: %v", all)
		}
	})
}
