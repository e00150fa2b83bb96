package clusterops_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// ofCluster returns the cluster-scoped kind of the group.
func ofCluster(group string) memapi.Resource {
	return memapi.Resource{Group: group, Version: "v1", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings"}
}

func ofNamespace(group string) memapi.Resource {
	return memapi.Resource{
		Group: group, Version: "v1", Kind: "KopfPeering", Plural: "kopfpeerings", Namespaced: true,
	}
}

// peeringCluster is a cluster with peering objects, and the log about them.
type peeringCluster struct {
	server     *memapi.Server
	connection *memapi.Connection
	log        bytes.Buffer
}

func newPeeringCluster(kinds ...memapi.Resource) *peeringCluster {
	server := memapi.New()
	for _, kind := range kinds {
		server.Install(kind)
	}
	return &peeringCluster{server: server, connection: server.Connect()}
}

// put creates a peering object with the given records.
func (b *peeringCluster) put(kind memapi.Resource, namespace string, status map[string]any) {
	metadata := map[string]any{"name": "default"}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	b.server.Put(kind, map[string]any{"metadata": metadata, "status": status})
}

// identities returns the identities with a record in the object.
func (b *peeringCluster) identities(t *testing.T, kind memapi.Resource, namespace string) []string {
	t.Helper()
	records, err := peering.DecodeRecords(b.server.Object(kind, namespace, "default"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for identity := range records {
		all = append(all, identity)
	}
	slices.Sort(all)
	return all
}

// carryOrder carries out an order of the identity "me" and returns its error as a text. A lifetime of zero resumes.
func (b *peeringCluster) carryOrder(lifetime time.Duration, texts ...string) string {
	log := logr.FromSlogHandler(slog.NewTextHandler(&b.log, nil))
	var patterns namespaces.Patterns
	for _, text := range texts {
		patterns = append(patterns, namespaces.ParsePattern(text))
	}
	order := clusterops.FreezeOrder{
		Peering: "default", Namespaces: patterns, Identity: "me",
		Record: peering.PeerRecord{Priority: 100, Lifetime: lifetime},
	}
	if err := order.CarryOut(logf.IntoContext(context.Background(), log), memapi.Config(b.connection)); err != nil {
		return err.Error()
	}
	return ""
}

// other returns the record of an operator that is alive.
func other(priority int) map[string]any {
	return map[string]any{
		"priority": int64(priority), "lifetime": int64(3600), "lastseen": time.Now().UTC().Format(time.RFC3339),
	}
}

// TestFreezeAndResume shows that a freeze pauses operators up to its priority, until a resume.
func TestFreezeAndResume(t *testing.T) {
	apart := ofCluster("kopf.dev")
	apart.StatusSubresource = true
	for name, kind := range map[string]memapi.Resource{
		"group of today": ofCluster("kopf.dev"), "group of old": ofCluster("zalando.org"), "status subresource": apart,
	} {
		t.Run(name, func(t *testing.T) {
			b := newPeeringCluster(kind, ofNamespace("kopf.dev"))
			b.put(kind, "", map[string]any{"low": other(0), "high": other(101)})
			if err := b.carryOrder(time.Minute); err != "" {
				t.Fatal(err)
			}
			records, err := peering.DecodeRecords(b.server.Object(kind, "", "default"), time.Now())
			if err != nil || records["me"].Runtime != "" {
				t.Errorf("the record must not take part in elections: %+v, error %v", records["me"], err)
			}
			for priority, paused := range map[int]bool{0: true, 100: true, 101: false} {
				delete(records, "high")
				self := peering.Self{Identity: "self", Priority: priority, Elects: true}
				if got := peering.JudgeRecords(self, records, time.Now()).IsPaused(); got != paused {
					t.Errorf("an operator with the priority %d pauses: %t", priority, got)
				}
			}
			for _, want := range []string{"pausing=[low]", "do not pause", "peers=[high]", "name=default"} {
				if !strings.Contains(b.log.String(), want) {
					t.Errorf("want %q in the log: %s", want, &b.log)
				}
			}
			if err := b.carryOrder(0); err != "" {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"high", "low"}, b.identities(t, kind, "")); d != "" {
				t.Errorf("the remaining records (-want, +got):\n%s", d)
			}
		})
	}
}

// TestBothGroups shows that a freeze writes to the objects of both API groups, or to the only one that exists.
func TestBothGroups(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		objects []string
	}{
		"both": {"objects of both groups get the record", []string{"kopf.dev", "zalando.org"}},
		"old":  {"the object of the old group gets the record if it is the only one", []string{"zalando.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPeeringCluster(ofCluster("kopf.dev"), ofCluster("zalando.org"))
			for _, group := range c.objects {
				b.put(ofCluster(group), "", nil)
			}
			if err := b.carryOrder(time.Minute); err != "" {
				t.Fatalf("%s: %s", c.reason, err)
			}
			for _, group := range c.objects {
				if d := cmp.Diff([]string{"me"}, b.identities(t, ofCluster(group), "")); d != "" {
					t.Errorf("%s: records of %s (-want, +got):\n%s", c.reason, group, d)
				}
			}
		})
	}
}

var errForbidden = apierrors.NewForbidden(
	schema.GroupResource{Group: "kopf.dev", Resource: "clusterkopfpeerings"}, "default",
	errors.New("it is not for you"),
)

// TestFailedFreezes shows that each reason why operators cannot be paused is an error that says what to do: D-freeze.
func TestFailedFreezes(t *testing.T) {
	pruning := ofCluster("kopf.dev")
	pruning.StatusFields = []string{"nothing"}
	for name, c := range map[string]struct {
		reason string
		kind   memapi.Resource
		absent bool
		refuse string // the verb that is forbidden
		resume bool
		want   []string
	}{
		"no CRD": {"a missing CRD is an error that names its manifest", ofNamespace("kopf.dev"), false, "", false,
			[]string{"this cluster has no clusterkopfpeerings", "config/crd/peerings.yaml"}},
		"no object": {"a missing peering object is an error that names the flag",
			ofCluster("kopf.dev"), true, "", false,
			[]string{`there is no ClusterKopfPeering "default"`, "-P (--peering)"}},
		"no object to resume": {"a missing peering object is an error of resume, too",
			ofCluster("kopf.dev"), true, "", true,
			[]string{`there is no ClusterKopfPeering "default"`}},
		"no right": {"a forbidden freeze is an error that names the role", ofCluster("kopf.dev"), false, "patch", false,
			[]string{"is forbidden", "it is not for you", "config/rbac/peering_role.yaml"}},
		"no right to resume": {"a forbidden resume is an error", ofCluster("kopf.dev"), false, "patch", true,
			[]string{"is forbidden"}},
		"no room": {"a record that the API server prunes is an error", pruning, false, "", false,
			[]string{"has not kept the record", "x-kubernetes-preserve-unknown-fields"}},
		"other version": {"a CRD without the version v1 counts as missing", memapi.Resource{
			Group: "kopf.dev", Version: "v2", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings",
		}, false, "", false, []string{"this cluster has no clusterkopfpeerings"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPeeringCluster(c.kind)
			if !c.absent && !c.kind.Namespaced {
				b.put(c.kind, "", nil)
			}
			b.connection.Before = func(_ context.Context, r memapi.Request) error {
				if r.Verb == c.refuse {
					return errForbidden
				}
				return nil
			}
			lifetime := time.Minute
			if c.resume {
				lifetime = 0
			}
			err := b.carryOrder(lifetime)
			for _, want := range c.want {
				if !strings.Contains(err, want) {
					t.Errorf("%s: want %q in the error %q", c.reason, want, err)
				}
			}
			if strings.Contains(b.log.String(), "Wrote") || strings.Contains(b.log.String(), "Removed") {
				t.Errorf("the log reports success: %s", &b.log)
			}
		})
	}
}

// TestResumeOfNothing shows that a resume works without the right to read, and that one without effect names the
// existing records.
func TestResumeOfNothing(t *testing.T) {
	kind := ofCluster("kopf.dev")
	b := newPeeringCluster(kind)
	b.put(kind, "", map[string]any{"you": other(100)})
	if err := b.carryOrder(0); err != "" {
		t.Fatal(err)
	}
	if text := b.log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "peers=[you]") {
		t.Errorf("the log does not name the existing record: %s", text)
	}
	b.put(kind, "", map[string]any{"me": other(100)})
	b.connection.Before = func(_ context.Context, r memapi.Request) error {
		if r.Verb == "get" {
			return errForbidden
		}
		return nil
	}
	if err := b.carryOrder(0); err != "" {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{}, b.identities(t, kind, "")); d != "" {
		t.Errorf("records (-want, +got):\n%s", d)
	}
}
