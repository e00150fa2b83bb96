package kopf_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// TestFreezeAndResume shows that the commands of an operator act on the peering object of its scope, with the identity
// of the caller.
func TestFreezeAndResume(t *testing.T) {
	kind := memapi.Resource{
		Group: "kopf.dev", Version: "v1", Kind: "ClusterKopfPeering", Plural: "clusterkopfpeerings",
	}
	server := memapi.New()
	server.Install(kind)
	server.Put(kind, map[string]any{"metadata": map[string]any{"name": "team"}})
	kubeconfig := serve(t, server)
	t.Setenv("POD_ID", "")
	for _, c := range []struct {
		reason, args, podID string
		code                int
		log                 string
		priorities          map[string]int // those of the records, by identities
	}{
		{"freeze uses the given identity and priority", "freeze -A -P team -t 600 -p 7 -i me", "", 0,
			"identity=me priority=7", map[string]int{"me": 7}},
		{"freeze in a pod uses the identity of the pod", "freeze -A -P team -t 10m --dev", "pod", 0,
			"identity=pod priority=666",
			map[string]int{"me": 7, "pod": 666}},
		{"resume in a pod removes the record of the pod", "resume -A -P team", "pod", 0, "Removed the record",
			map[string]int{"me": 7}},
		{"resume without a record succeeds and logs it", "resume -A -P team -i you", "", 0,
			"There is no record to be removed",
			map[string]int{"me": 7}},
		{"resume logs in the given format", "resume -P team --id me --log-format json", "", 0, `"identity":"me"`, nil},
		{"freeze uses Kopf's default priority", "freeze -AP team -t1h -i me -m why", "", 0, "reason=why",
			map[string]int{"me": 100}},
		{"a missing peering object is an error", "freeze -A -P other -t 60", "", 1,
			`Error: freeze of peering "other": there is no ClusterKopfPeering "other"`, map[string]int{"me": 100}},
		{"a missing kind of peering object is an error", "freeze -n a -P team -t 60", "", 1,
			"this cluster has no kopfpeerings",
			map[string]int{"me": 100}},
	} {
		t.Setenv("POD_ID", c.podID)
		code, _, errs := execute(t, newWidgetOperator(), append(strings.Fields(c.args), "--kubeconfig", kubeconfig)...)
		if code != c.code || !strings.Contains(errs, c.log) {
			t.Errorf("%s: %s: exit code %d, want %d, and %q in: %s", c.args, c.reason, code, c.code, c.log, errs)
		}
		records, err := peering.DecodeRecords(server.Object(kind, "", "team"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for identity, record := range records {
			got[identity] = record.Priority
		}
		if c.priorities == nil {
			c.priorities = map[string]int{}
		}
		if d := cmp.Diff(c.priorities, got); d != "" {
			t.Errorf("%s: %s: records (-want, +got):\n%s", c.args, c.reason, d)
		}
	}
	// Outside a pod, the identity is user@host, the same for both commands.
	for _, args := range []string{"freeze -A -P team -t 60", "resume -A -P team"} {
		t.Setenv("POD_ID", "")
		code, _, errs := execute(t, newWidgetOperator(), append(strings.Fields(args), "--kubeconfig", kubeconfig)...)
		status, _ := server.Object(kind, "", "team")["status"].(map[string]any)
		byHand := slices.ContainsFunc(slices.Collect(maps.Keys(status)), func(identity string) bool {
			return strings.Contains(identity, "@") && !strings.Contains(identity, "/")
		})
		if code != 0 || byHand != strings.HasPrefix(args, "freeze") {
			t.Errorf("%s: exit code %d, records %v: %s", args, code, status, errs)
		}
	}
}
