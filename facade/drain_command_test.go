package kopf_test

import (
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestDrainCommand shows the exit codes and the output of the command: wrong flags, refusals, a check, and a drain.
func TestDrainCommand(t *testing.T) {
	server := memapi.New()
	server.Install(widgetResource)
	widget := func(name string, metadata map[string]any) {
		metadata["name"], metadata["namespace"], metadata["uid"] = name, "default", name
		server.Put(widgetResource, map[string]any{"metadata": metadata})
	}
	widget("one", map[string]any{
		"finalizers":  []any{"test.example.org/finalizer", "test.example.org/other"},
		"annotations": map[string]any{"test.example.org/kopf-managed": "yes", "test.example.org/note": "of a user"},
	})
	widget("two", map[string]any{"finalizers": []any{"test.example.org/finalizer"}})
	widget("three", map[string]any{
		"finalizers": []any{"test.example.org/finalizer"}, "deletionTimestamp": "2020-01-01T00:00:00Z",
	})
	server.Install(leases)
	server.Put(leases, map[string]any{"metadata": map[string]any{"name": "mine", "namespace": "ops"}})
	kubeconfig := serve(t, server)
	for _, c := range []struct {
		reason, args string
		code         int
		want         []string
	}{
		{"an unknown way for deletions is an error", "drain -A --deletions now", 2, []string{`"now" is none of`}},
		{"delete handlers must have time", "drain -A --deletions run --deletion-timeout 0s", 2,
			[]string{"0s is not positive"}},
		{"a check cannot freeze", "drain -A --check --freeze", 2, []string{"exclude each other"}},
		{"the flag for AsKopf is an error otherwise", "drain -A --shared-finalizer", 2,
			[]string{"only for operators with AsKopf"}},
		{"an invalid peering is an error", "drain -A -P a_b", 2, []string{`"a_b" is not the name of a peering object`}},
		{"a check lists everything", "drain -A --check", 2, []string{
			"Widget.example.org default/one: finalizer, annotation test.example.org/kopf-managed\n",
			"Widget.example.org default/two: finalizer\n",
			"Widget.example.org default/three: finalizer: it is being deleted", "test.example.org/note",
			"widgets.example.org   3          3       0", `Error: operator "test.example.org" has things at 3 places`,
		}},
		{"without a terminal, --yes is necessary", "drain -A", 1, []string{"confirm that by --yes"}},
		{"only the given namespaces are drained", "drain -n other -y", 0, []string{"Nothing of the operator is left"}},
		{"objects that are left are an error", "drain -n default -y", 1, []string{
			"Widget.example.org default/three: finalizer: it is being deleted",
			"widgets.example.org   3          3       2",
			"was not drained completely: 1 things are left",
		}},
		{"deletions can be skipped", "drain -A -y --deletions skip", 0,
			[]string{"handles each object as created"}},
		{"nothing is left", "drain -A --check", 0, []string{`Nothing of operator "test.example.org" is left`}},
		{"a check lists the Lease of the flag", "drain -A --check --leader-elect-id mine", 2,
			[]string{"Lease ops/mine"}},
		{"a released Lease shows that no process runs", "drain -A --leader-elect-id mine", 0,
			[]string{"Nothing of the operator is left"}},
		{"an invalid name of a Lease is an error", "drain -A --leader-elect-id a_b", 2,
			[]string{"the name of a Lease"}},
		{"the memory can be kept", "drain -A -y --keep-memory", 0, []string{"continues with it"}},
	} {
		args := append(strings.Fields(c.args), "--kubeconfig", kubeconfig)
		code, out, errs := execute(t, newWidgetOperator(), args...)
		if code != c.code {
			t.Errorf("%s: %s: exit code %d, want %d", c.args, c.reason, code, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%s: %s: want %q in:\n%s%s", c.args, c.reason, want, out, errs)
			}
		}
	}
	if got := server.Object(widgetResource, "default", "three"); got != nil {
		t.Errorf("a released object disappears: got %v", got)
	}
	_, out, _ := execute(t, kopf.New("test.example.org"), "drain", "--help")
	for _, want := range []string{"handles each object as created", "--keep-memory", "drain -A --check"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in the help: %s", want, out)
		}
	}
}
