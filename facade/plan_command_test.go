package kopf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/planning"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// plannedDump has an object that a Python operator has handled, one that it has not, and progress that belongs to no
// handler.
const plannedDump = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true}]
---
apiVersion: example.org/v1
kind: Widget
metadata:
  name: handled
  namespace: default
  uid: "1"
  annotations:
    kopf.zalando.org/last-handled-configuration: '{"spec":{"size":3}}'
    kopf.zalando.org/former: '{"started":"2026-01-01T00:00:00.000000","retries":1,"success":false,"failure":false}'
spec: {size: 3}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: fresh, namespace: default, uid: "2"}
spec: {size: 3}
`

// runPlan runs the command plan for an operator that must not be called.
func runPlan(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	op := kopf.New("widgets.example.net")
	called := func(context.Context, *kopf.Change[*kopf.Unstructured]) error {
		t.Error("a plan must not call handlers")
		return nil
	}
	kopf.ForResource(op, "widgets.example.org").OnCreate("provision", called)
	kopf.ForResource(op, "widgets.example.org").OnUpdate("follow", called)
	cmd := op.Command()
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"plan"}, args...))
	return kopf.ExitCode(cmd.ExecuteContext(t.Context())), stdout.String(), stderr.String()
}

func TestPlanCommandOfADump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.yaml")
	if err := os.WriteFile(file, []byte(plannedDump), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runPlan(t, "-A", "--load", file)
	for _, want := range []string{
		"WARNING: 1 objects would be handled as created, and have the last-handled configuration of kopf.zalando.org",
		"widgets.example.org  provision  create  2",
		"default/fresh: called for create; no last-handled configuration\n",
	} {
		if code != 2 || !strings.Contains(out, want) {
			t.Errorf("code %d, and the text must have %q:\n%s%s", code, want, out, errs)
		}
	}
	code, out, errs = runPlan(t, "-A", "--load", file, "--from-kopf", "-o", "json")
	var report planning.ChangePlan
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if code != 2 || report.Handlers[0].Creations != 1 || len(report.Objects) != 2 {
		t.Errorf("code %d: with Kopf's storages, one object is new, and the other one has a leftover: %s", code, out)
	}
	for _, o := range report.Objects {
		if o.Name == "handled" && (len(o.Leftovers) != 1 || len(o.Handlers)+len(o.Skipped) != 0) {
			t.Errorf("the progress of an unknown handler must be a leftover, and nothing else: %+v", o)
		}
		if o.Name == "fresh" && (len(o.Skipped) != 1 || o.Skipped[0].Handler != "follow") {
			t.Errorf("an object with a handler must show why the others are not called: %+v", o)
		}
	}
	code, out, errs = runPlan(t, "-n", "other", "--load", file)
	if code != 0 || !strings.Contains(out, "0 objects need a handler") {
		t.Errorf("code %d: no object is in the namespace: %s%s", code, out, errs)
	}
}

func TestPlanCommandErrors(t *testing.T) {
	for name, args := range map[string][]string{
		"a missing file":    {"--load", "absent.yaml"},
		"a wrong format":    {"--load", "absent.yaml", "-o", "xml"},
		"an unknown flag":   {"--what"},
		"an argument":       {"all"},
		"a negative limit":  {"--load", "absent.yaml", "--limit", "-1"},
		"two sources":       {"--load", "absent.yaml", "--context", "staging"},
		"a missing cluster": {"--kubeconfig", "absent.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, out, errs := runPlan(t, args...); code != 1 || errs == "" || out != "" {
				t.Errorf("an error must have the code 1 and a text, as 2 is for changes: %d, %q, %q", code, out, errs)
			}
		})
	}
}

// writingEssences and writingRecords count the writes of the storages of a project.
type (
	writingEssences struct {
		diffbase.Annotations
		writes *int
	}
	writingRecords struct {
		progress.Annotations
		writes *int
	}
)

// Store counts the writes for the objects of the dump.
func (s writingEssences) Store(patch, body map[string]any, essence diffbase.Essence) error {
	// The set-up tries the storage with other objects.
	if uid := (&kopf.Unstructured{Object: body}).GetUID(); uid == "1" || uid == "2" {
		*s.writes++
	}
	return s.Annotations.Store(patch, body, essence)
}

// Purge counts the writes for the objects of the dump.
func (s writingRecords) Purge(patch, body map[string]any, id string) {
	if uid := (&kopf.Unstructured{Object: body}).GetUID(); uid == "1" || uid == "2" {
		*s.writes++
	}
	s.Annotations.Purge(patch, body, id)
}

func TestPlanCommandWithOwnStorages(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.yaml")
	if err := os.WriteFile(file, []byte(plannedDump), 0o600); err != nil {
		t.Fatal(err)
	}
	writes := 0
	op := kopf.New("widgets.example.net", kopf.Settings{Persistence: kopf.PersistenceSettings{
		DiffbaseStorage: writingEssences{diffbase.Annotations{Prefix: "widgets.example.net"}, &writes},
		ProgressStorage: writingRecords{progress.Annotations{Prefix: "widgets.example.net"}, &writes},
	}})
	nothing := func(context.Context, *kopf.Change[*kopf.Unstructured]) error { return nil }
	// New objects have no handler to call, so the pass would store their configuration at once.
	kopf.ForResource(op, "widgets.example.org").OnUpdate("follow", nothing)
	kopf.ForResource(op, "widgets.example.org").OnDelete("clean", nothing)
	cmd := op.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"plan", "-A", "--load", file})
	if code := kopf.ExitCode(cmd.ExecuteContext(t.Context())); code != 0 || writes != 0 {
		t.Errorf("code %d, and a plan must not write to a database, but it wrote %d times:\n%s", code, writes, &out)
	}
}
