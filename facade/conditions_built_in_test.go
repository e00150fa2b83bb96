package kopf_test

import (
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Kubernetes' own kinds have conditions of its own controllers. One line tells when the kind is found, and nothing is
// written to the status of its objects, whatever becomes of their handlers.
func TestConditionsOfBuiltInKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, c := range map[string]struct {
		reason              string
		group, kind, plural string
		observed            string // what the whole status is about; empty if nothing is written
	}{
		"pods":        {"their kubelets say whether they are ready", "", "Pod", "pods", ""},
		"nodes":       {"pods are evicted from those that are not ready", "", "Node", "nodes", ""},
		"deployments": {"kubectl rollout reads their conditions", "apps", "Deployment", "deployments", ""},
		"ingresses":   {"what is below k8s.io may be Kubernetes' own", "networking.k8s.io", "Ingress", "ingresses", ""},
		"services":    {"their list is meant for everybody", "", "Service", "services", "observed 0 of 1"},
		"budgets": {
			"theirs as well, and its controller says what it has observed", "policy", "PodDisruptionBudget",
			"poddisruptionbudgets", "observed 0 of 1",
		},
		"gateways": {
			"a project beside Kubernetes has that domain, too", "gateway.networking.k8s.io", "Gateway", "gateways",
			"observed 1 of 1",
		},
	} {
		for how, register := range map[string]func(s houseSel){"selection": retrying, "settings": neverDone} {
			t.Run(name+" by the "+how, func(t *testing.T) {
				inConditional(t, func(r *memapi.Resource) {
					r.Group, r.Kind, r.Plural = c.group, c.kind, c.plural
				}, func(e conditional) {
					way, log, stop := e.run(register, kopf.Settings{
						Conditions: how == "settings",
					})
					defer stop()
					e.checkRefusal("when it is found", c.observed != "", log)
					e.build(map[string]any{"size": int64(1)})
					time.Sleep(time.Hour)
					e.settle()
					e.checkRefusal("after an hour of retries", c.observed != "", log)
					n, told := countStatus(way), e.told()
					if c.observed == "" && (n > 0 || e.house().Object["status"] != nil) {
						t.Errorf("%s: %d writes of the status: %q", c.reason, n, told)
					}
					if c.observed != "" && (len(told) != 3 || told[2] != c.observed) {
						t.Errorf("%s: %q", c.reason, told)
					}
				})
			})
		}
	}
}

// checkRefusal wants one line about the kind, unless it takes conditions.
func (e conditional) checkRefusal(when string, taken bool, log *lines) {
	e.t.Helper()
	told := log.with(notWritten)
	want := []string{"Kind=" + e.houses.Kind, "its conditions belong to the controllers of Kubernetes",
		"leave Conditions out for the kind"}
	if taken {
		if len(told) > 0 {
			e.t.Errorf("%s: %q", when, told)
		}
		return
	}
	if len(told) != 1 {
		e.t.Errorf("%s: told %d times: %q", when, len(told), told)
		return
	}
	for _, text := range want {
		if !strings.Contains(told[0], text) {
			e.t.Errorf("%s: %q lacks %q", when, told[0], text)
		}
	}
}
