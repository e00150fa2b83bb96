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

	"github.com/kopf-runtime/kopf-runtime/reconcilers/adapters"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/conditions"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery/discoverytest"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/settings"
)

const document = "/openapi/v3/apis/example.org/v1"

// accepting is a kind whose objects are to tell of their handlers, and the API server with its schema.
type accepting struct {
	*Dependencies
	*acceptance
	t      *testing.T
	server *discoverytest.Documents
	said   []string
}

func newAccepting(t *testing.T, r discovery.Resource) *accepting {
	a := &accepting{t: t, server: &discoverytest.Documents{Of: map[string]any{}}}
	a.Dependencies = &Dependencies{
		Server: a.server, Log: funcr.New(func(_, line string) { a.said = append(a.said, line) }, funcr.Options{}),
		Settings: settings.Settings{Conditions: conditions.Types{Ready: "Ready", WholeStatus: true}},
	}
	a.acceptance = a.conditionsOf(r, reporters()).Acceptance.(*acceptance)
	return a
}

func reporters() []*adapters.Handler {
	return []*adapters.Handler{adapters.New(&handlers.Handler{ID: "r", Family: handlers.Reporting}, nil)}
}

// has puts the schema of the status into the server's document.
func (a *accepting) has(status map[string]any) {
	a.server.Become(func() {
		kind := map[string]any{"group": "example.org", "version": "v1", "kind": "Widget"}
		a.server.Of[document] = map[string]any{"components": map[string]any{"schemas": map[string]any{
			"W": map[string]any{
				"x-kubernetes-group-version-kind": []any{kind},
				"properties":                      map[string]any{"status": map[string]any{"properties": status}},
			},
		}}}
	})
}

// want compares what is written now, and with how many new lines that was told.
func (a *accepting) want(when string, written bool, lines int) {
	a.t.Helper()
	if types, ok := a.Types(a.t.Context()); ok != written || types.Ready != "Ready" {
		a.t.Errorf("%s: written: %v, want %v, %v", when, ok, written, types)
	}
	if len(a.said) != lines {
		a.t.Errorf("%s: %d lines, want %d: %q", when, len(a.said), lines, a.said)
	}
	a.said = nil
}

func withStatus(r discovery.Resource) discovery.Resource {
	r.Subresources = []string{"status"}
	return r
}

func TestConditionsWithoutAPlace(t *testing.T) {
	kind := func(group, name string) discovery.Resource {
		return withStatus(discovery.Resource{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name},
		})
	}
	for name, c := range map[string]struct {
		reason string
		r      discovery.Resource
		taken  bool
		whole  bool
	}{
		"Deployment":      {"its conditions are its own controllers'", kind("apps", "Deployment"), false, false},
		"Pod":             {"they decide by its Ready", kind("", "Pod"), false, false},
		"Service":         {"its conditions are for all", kind("", "Service"), true, false},
		"Custom":          {"a CRD's are those of its operator", kind("example.org", "Widget"), true, true},
		"CustomOfAnIdol":  {"this domain has CRDs, too", kind("gateway.networking.k8s.io", "Gateway"), true, true},
		"WithoutStatuses": {"nothing would tell who writes what", widgets, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			defer explain(t, c.reason)
			a := newAccepting(t, c.r)
			a.Dependencies.Server, a.acceptance.server = nil, nil
			a.inspectConditions(t.Context(), c.r, reporters())
			types, taken := a.Types(t.Context())
			if taken != c.taken || types.WholeStatus != c.whole {
				t.Errorf("written: %v, observedGeneration: %v", taken, types.WholeStatus)
			}
			if !taken && (len(a.said) != 1 || !strings.Contains(a.said[0], c.r.Kind)) {
				t.Errorf("one line with the kind: %q", a.said)
			}
		})
	}
}

func TestSchemaWithoutConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withStatus(widgets)
		a := newAccepting(t, r)
		a.has(map[string]any{})
		a.inspectConditions(t.Context(), r, nil)
		a.want("no handler reports, so nobody looks", true, 0)
		a.inspectConditions(t.Context(), r, reporters())
		if len(a.said) == 1 && !strings.Contains(a.said[0], remedyForSchema) {
			t.Errorf("the remedy is missing: %s", a.said[0])
		}
		a.want("the schema has no place", false, 1)
		a.has(map[string]any{"conditions": map[string]any{}})
		time.Sleep(refusalPause - time.Second)
		a.want("the schema is not looked at all the time", false, 0)
		time.Sleep(2 * time.Second)
		a.want("it was mended meanwhile", true, 0)
		if types, _ := a.Types(t.Context()); types.WholeStatus {
			t.Error("there is no status.observedGeneration in the schema")
		}
		a.has(map[string]any{})
		time.Sleep(time.Hour)
		a.want("without a refusal it is not looked at again", true, 0)
		a.has(map[string]any{"conditions": map[string]any{}, "observedGeneration": map[string]any{}})
		a.inspectConditions(t.Context(), r, reporters())
		if types, _ := a.Types(t.Context()); !types.WholeStatus {
			t.Error("there is a status.observedGeneration in the schema")
		}
	})
}

// What cannot be asked for will be seen when it is written.
func TestSchemaThatIsNotKnown(t *testing.T) {
	r := withStatus(widgets)
	a := newAccepting(t, r)
	a.inspectConditions(t.Context(), r, reporters())
	a.want("the server has no document", true, 0)
	a.has(map[string]any{})
	a.server.Become(func() { a.server.Err = errors.New("out of order") })
	a.inspectConditions(t.Context(), r, reporters())
	a.want("it does not answer", true, 0)
}

// Another definition of a kind has its own mistakes: that is told even if it is the same as before.
func TestSchemaReplaced(t *testing.T) {
	r := withStatus(widgets)
	a := newAccepting(t, r)
	a.has(map[string]any{})
	for range 2 {
		a.inspectConditions(t.Context(), r, reporters())
	}
	a.want("the same definition", false, 1)
	other := r
	other.Namespaced = false
	a.inspectConditions(t.Context(), other, reporters())
	a.want("another one", false, 1)
}

func TestRefusedConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccepting(t, withStatus(widgets))
		a.Refused(t.Context(), errors.New("too long"), false)
		a.want("one object is refused: the others are not", true, 1)
		a.Refused(t.Context(), errors.New("too short"), false)
		a.want("a reason for each object would fill the log", true, 0)
		time.Sleep(refusalPause + time.Second)
		a.Refused(t.Context(), errors.New("too short"), false)
		a.want("after some time it is news", true, 1)
		for _, c := range []struct {
			why    error
			remedy string
		}{
			{apierrors.NewForbidden(schema.GroupResource{}, "a", nil), remedyForRights},
			{errors.New("unknown field"), remedyForSchema},
		} {
			a.Refused(t.Context(), c.why, true)
			if len(a.said) == 1 && !strings.Contains(a.said[0], strings.ReplaceAll(c.remedy, `"`, `\"`)) {
				t.Errorf("the remedy is missing: %s", a.said[0])
			}
			a.want("no object will be taken", false, 1)
		}
		a.Refused(t.Context(), errors.New("unknown field"), true)
		a.want("for the same reason", false, 0)
		time.Sleep(refusalPause + time.Second)
		a.want("it may be over", true, 0)
	})
}

func TestNobodyReports(t *testing.T) {
	if (&Dependencies{}).conditionsOf(withStatus(widgets), nil) != nil {
		t.Error("objects tell of their handlers, though no handler wants it")
	}
}
