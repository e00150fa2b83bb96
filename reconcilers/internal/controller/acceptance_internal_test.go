package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/go-logr/logr/funcr"

	"github.com/kopf-runtime/kopf-runtime/internal/conditions"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/test/kits/discoverytest"
)

const document = "/openapi/v3/apis/example.org/v1"

// conditionFixture is a kind whose objects report the state of their handlers in conditions, with a server that serves
// its schema.
type conditionFixture struct {
	*Dependencies
	*acceptance
	t        *testing.T
	server   *discoverytest.Documents
	logLines []string
}

func newConditionFixture(t *testing.T, r discovery.Resource) *conditionFixture {
	a := &conditionFixture{t: t, server: &discoverytest.Documents{ByPath: map[string]any{}}}
	a.Dependencies = &Dependencies{
		Server: a.server, Log: funcr.New(func(_, line string) { a.logLines = append(a.logLines, line) },
			funcr.Options{}),
		Settings: kind.Settings{Conditions: conditions.Types{Ready: "Ready", WritesObservedGeneration: true}},
	}
	a.acceptance = a.conditionsFor(r, reportingHandlers()).Acceptance.(*acceptance)
	return a
}

func reportingHandlers() []*adapters.HandlerChain {
	return []*adapters.HandlerChain{adapters.New(&handlers.Handler{ID: "r", Family: handlers.Condition}, nil)}
}

// serveStatusSchema puts the schema of the status into the server's document.
func (a *conditionFixture) serveStatusSchema(status map[string]any) {
	a.server.ChangeDocuments(func() {
		kind := map[string]any{"group": "example.org", "version": "v1", "kind": "Widget"}
		a.server.ByPath[document] = map[string]any{"components": map[string]any{"schemas": map[string]any{
			"W": map[string]any{
				"x-kubernetes-group-version-kind": []any{kind},
				"properties":                      map[string]any{"status": map[string]any{"properties": status}},
			},
		}}}
	})
}

// requireWriting checks whether conditions are written now, and how many lines were logged since the last check.
func (a *conditionFixture) requireWriting(when string, written bool, lines int) {
	a.t.Helper()
	if types, ok := a.Types(a.t.Context()); ok != written || types.Ready != "Ready" {
		a.t.Errorf("%s: written: %v, want %v, %v", when, ok, written, types)
	}
	if len(a.logLines) != lines {
		a.t.Errorf("%s: %d lines, want %d: %q", when, len(a.logLines), lines, a.logLines)
	}
	a.logLines = nil
}

func withStatus(r discovery.Resource) discovery.Resource {
	r.Subresources = []string{"status"}
	return r
}

// TestKindsWithoutConditions shows which kinds get conditions, and that the log explains the others.
func TestKindsWithoutConditions(t *testing.T) {
	kind := func(group, name string) discovery.Resource {
		return withStatus(discovery.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name},
		})
	}
	for name, c := range map[string]struct {
		reason                 string
		r                      discovery.Resource
		wantAccepted           bool
		wantObservedGeneration bool
	}{
		"Deployment": {"conditions of a built-in kind belong to its own controllers",
			kind("apps", "Deployment"), false, false},
		"Pod": {"the Ready condition of a Pod decides whether it receives traffic",
			kind("", "Pod"), false, false},
		"Service": {"conditions of a Service may be written by any component",
			kind("", "Service"), true, false},
		"Ingress": {"the whole group networking.k8s.io is built in",
			kind("networking.k8s.io", "Ingress"), false, false},
		"Budget": {"a disruption budget keeps the observed generation of its controller",
			kind("policy", "PodDisruptionBudget"), true, false},
		"Custom": {"conditions of a custom resource belong to its operator",
			kind("example.org", "Widget"), true, true},
		"CustomOfAnIdol": {"a custom resource in a domain of Kubernetes is treated as custom",
			kind("gateway.networking.k8s.io", "Gateway"), true, true},
		"WithoutStatuses": {"without a status subresource, writers of the status cannot be distinguished",
			widgets, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			a := newConditionFixture(t, c.r)
			a.Dependencies.Server, a.acceptance.server = nil, nil
			a.inspectConditions(t.Context(), c.r, reportingHandlers())
			types, taken := a.Types(t.Context())
			if taken != c.wantAccepted || types.WritesObservedGeneration != c.wantObservedGeneration {
				t.Errorf("written: %v, observedGeneration: %v", taken, types.WritesObservedGeneration)
			}
			if !taken && (len(a.logLines) != 1 || !strings.Contains(a.logLines[0], c.r.Kind)) {
				t.Errorf("want one line with the kind, got %q", a.logLines)
			}
		})
	}
}

// TestSchemaWithoutConditions shows that the schema decides whether conditions and observedGeneration are written, and
// that a corrected schema is found after a pause.
func TestSchemaWithoutConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withStatus(widgets)
		a := newConditionFixture(t, r)
		a.serveStatusSchema(map[string]any{})
		a.inspectConditions(t.Context(), r, nil)
		a.requireWriting("without a reporting handler the schema is not checked", true, 0)
		a.inspectConditions(t.Context(), r, reportingHandlers())
		if len(a.logLines) == 1 && !strings.Contains(a.logLines[0], remedyForSchema) {
			t.Errorf("the log line lacks the remedy: %s", a.logLines[0])
		}
		a.requireWriting("a schema without conditions disables writing and logs once", false, 1)
		a.serveStatusSchema(map[string]any{"conditions": map[string]any{}})
		time.Sleep(refusalPause - time.Second)
		a.requireWriting("the schema is not read again before the pause is over", false, 0)
		time.Sleep(2 * time.Second)
		a.requireWriting("a corrected schema enables writing after the pause", true, 0)
		if types, _ := a.Types(t.Context()); types.WritesObservedGeneration {
			t.Error("observedGeneration is written although the schema does not have it")
		}
		a.serveStatusSchema(map[string]any{})
		time.Sleep(time.Hour)
		a.requireWriting("a working schema is not checked again without a refusal", true, 0)
		a.serveStatusSchema(map[string]any{"conditions": map[string]any{}, "observedGeneration": map[string]any{}})
		a.inspectConditions(t.Context(), r, reportingHandlers())
		if types, _ := a.Types(t.Context()); !types.WritesObservedGeneration {
			t.Error("observedGeneration is not written although the schema has it")
		}
	})
}

// TestSchemaThatIsNotKnown shows that conditions are written while the schema cannot be read: a refusal of the API
// server decides then.
func TestSchemaThatIsNotKnown(t *testing.T) {
	r := withStatus(widgets)
	a := newConditionFixture(t, r)
	a.inspectConditions(t.Context(), r, reportingHandlers())
	a.requireWriting("a server without the document allows writing", true, 0)
	a.serveStatusSchema(map[string]any{})
	a.server.ChangeDocuments(func() { a.server.Err = errors.New("out of order") })
	a.inspectConditions(t.Context(), r, reportingHandlers())
	a.requireWriting("a server that returns an error allows writing", true, 0)
}

// TestSchemaReplaced shows that a new definition of a kind is reported even if it has the same mistake as the old one.
func TestSchemaReplaced(t *testing.T) {
	r := withStatus(widgets)
	a := newConditionFixture(t, r)
	a.serveStatusSchema(map[string]any{})
	for range 2 {
		a.inspectConditions(t.Context(), r, reportingHandlers())
	}
	a.requireWriting("the same definition is reported once", false, 1)
	other := r
	other.Namespaced = false
	a.inspectConditions(t.Context(), other, reportingHandlers())
	a.requireWriting("a changed definition is reported again", false, 1)
}

// TestRefusedConditions shows that a refusal for one object is only logged, and that a lasting one stops the writing
// for a while.
func TestRefusedConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newConditionFixture(t, withStatus(widgets))
		a.ReportRefused(t.Context(), errors.New("too long"), false)
		a.requireWriting("a refusal for one object does not stop writing for the others", true, 1)
		a.ReportRefused(t.Context(), errors.New("too short"), false)
		a.requireWriting("a second refusal within the pause is not logged", true, 0)
		time.Sleep(refusalPause + time.Second)
		a.ReportRefused(t.Context(), errors.New("too short"), false)
		a.requireWriting("a refusal after the pause is logged again", true, 1)
		for _, c := range []struct {
			why    error
			remedy string
		}{
			{apierrors.NewForbidden(schema.GroupResource{}, "a", nil), remedyForRights},
			{errors.New("unknown field"), remedyForSchema},
		} {
			a.ReportRefused(t.Context(), c.why, true)
			if len(a.logLines) == 1 && !strings.Contains(a.logLines[0], strings.ReplaceAll(c.remedy, `"`, `\"`)) {
				t.Errorf("the log line lacks the remedy: %s", a.logLines[0])
			}
			a.requireWriting("a refusal that affects all objects stops writing", false, 1)
		}
		a.ReportRefused(t.Context(), errors.New("unknown field"), true)
		a.requireWriting("a second refusal for the same cause is not logged", false, 0)
		time.Sleep(refusalPause + time.Second)
		a.requireWriting("writing is tried again after the pause", true, 0)
	})
}

// TestNoReportingHandlers shows that a kind without reporting handlers gets no conditions.
func TestNoReportingHandlers(t *testing.T) {
	if (&Dependencies{}).conditionsFor(withStatus(widgets), nil) != nil {
		t.Error("conditions are written for a kind without reporting handlers")
	}
}
