package program_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/program"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

func TestDescribe(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		isProgram bool
		peering   defaults.Peering
		mode      string
		want      string
	}{
		"Program": {
			"a program looks for the default peering",
			true, defaults.Peering{}, "", `peering "test.example.org" with priority 0, if it exists`,
		},
		"Standalone": {
			"a standalone program does not look for peers",
			true, defaults.Peering{Standalone: true}, "auto", "none: run one replica",
		},
		"Elected": {
			"without a peering object, a Lease decides", true, defaults.Peering{}, "true",
			`peering "test.example.org" with priority 0, if it exists, or Lease default/test.example.org-684888c0`,
		},
		"ElectedAlone": {
			"a standalone program that must elect has a Lease", true, defaults.Peering{Standalone: true}, "true",
			"Lease default/test.example.org-684888c0",
		},
		"Manager": {
			"a manager relies on its own leader election",
			false, defaults.Peering{}, "", "leader election of the manager, if enabled",
		},
		"Named": {
			"a named peering makes a manager look for it", false, defaults.Peering{Name: "p", Priority: 7},
			"", `peering "p" with priority 7, if it exists`,
		},
		"Mandatory": {
			"a mandatory peering is described without a condition", false, defaults.Peering{Mandatory: true},
			"", `peering "test.example.org" with priority 0`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := program.Coordination{Operator: operator, HasOwnManager: tc.isProgram}
			by := program.CoordinationSettings{Peering: tc.peering, ResolvedPeering: tc.peering}
			by.ElectionFlags.Mode = tc.mode
			_ = by.ResolvedPeering.ResolveDefaults(operator)
			if got := c.DescribeMode(by); got != tc.want {
				t.Errorf("%s: Describe(): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestElects shows when a Lease decides which replica of a program acts. See D-lease for the rules of Kopf.
func TestElects(t *testing.T) {
	pod := func() string { return "team" }
	given := func(p defaults.Peering) program.CoordinationSettings {
		return program.CoordinationSettings{Peering: p, ElectionFlags: serving.ElectionFlags{Mode: "auto"}}
	}
	mode := func(mode string) program.CoordinationSettings {
		return program.CoordinationSettings{ElectionFlags: serving.ElectionFlags{Mode: mode}}
	}
	in := given(defaults.Peering{})
	elsewhere := in
	elsewhere.Cluster.Context = "other"
	for name, tc := range map[string]struct {
		reason   string
		by       program.CoordinationSettings
		pod      func() string
		embedded bool
		want     bool
	}{
		"Pod":       {"a program in a pod elects", in, pod, false, true},
		"Laptop":    {"outside of pods, there is one process", in, func() string { return "" }, false, false},
		"Elsewhere": {"a kubeconfig can be for another cluster than that of the pod", elsewhere, pod, false, false},
		"Run":       {"a call of Run has no flags", mode(""), pod, true, false},
		"Never":     {"false never elects", mode("false"), pod, false, false},
		"Always":    {"true elects outside of pods as well", mode("true"), func() string { return "" }, false, true},
		"Standalone": {"a standalone operator ignores others",
			given(defaults.Peering{Standalone: true}), pod, false, false},
		"Kopf":      {"Kopf has no leader election", given(defaults.Peering{KopfRules: true}), pod, false, false},
		"Mandatory": {"a mandatory peering decides", given(defaults.Peering{Mandatory: true}), pod, false, false},
		"Named":     {"a named peering may be missing", given(defaults.Peering{Name: "p"}), pod, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", "")
			c := program.Coordination{
				Operator: operator, HasOwnManager: true, Embedded: tc.embedded, PodNamespace: tc.pod,
			}
			if got := c.Elects(tc.by); got != tc.want {
				t.Errorf("%s: Elects(): %t", tc.reason, got)
			}
		})
	}
	manager := program.Coordination{Operator: operator, PodNamespace: pod}
	if manager.Elects(in) {
		t.Error("a manager of the project has its own leader election")
	}
}

func TestLock(t *testing.T) {
	c := program.Coordination{Operator: operator}
	first := c.PeeringLock(defaults.Peering{Identity: "me", Standalone: true})
	if second := c.PeeringLock(defaults.Peering{}); first != second || first.Identity() != "me" || !c.HasLock() {
		t.Errorf("Lock(): %v and %v, want the same lock of me", first, second)
	}
	if !c.HasPeers(defaults.Peering{Standalone: true}) {
		t.Error("HasPeers() with a lock: false")
	}
}

func TestStartLine(t *testing.T) {
	selector, err := discovery.ParseSpelling("widgets")
	if err != nil {
		t.Fatal(err)
	}
	var plan []reconcilers.Registration
	for _, h := range []*handlers.Handler{
		{ID: "a", Family: handlers.Changing, Reason: cause.Create},
		{ID: "a", Family: handlers.Changing, Reason: cause.Update},
		{ID: "conditions", Family: handlers.Condition},
		{ID: "finalizer", Family: handlers.Admitting, IsOptimization: true},
	} {
		plan = append(plan, reconcilers.Registration{Selector: selector, Handler: h})
	}
	got := program.StartLine(plan, nil, "none", serving.RunFlags{
		Metrics: serving.Metrics{BindAddress: ":8080"}, HealthProbeBindAddress: "0",
		Inspection: serving.Inspection{Address: "localhost:8082", Optional: true},
	})
	want := []any{
		"kinds", "widgets", "handlers", 1, "namespaces", []string{"*"}, "coordination", "none",
		"metrics", ":8080/metrics",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("StartLine(): -want, +got:\n%s", d)
	}
}
