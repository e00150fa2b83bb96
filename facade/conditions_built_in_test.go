package kopf_test

import (
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestConditionsOfBuiltInKinds shows that no conditions are written to built-in kinds whose conditions belong to
// controllers of Kubernetes, whatever the outcome of the handlers. One log line reports this when the kind is
// found.
func TestConditionsOfBuiltInKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, c := range map[string]struct {
		reason              string
		group, kind, plural string
		observed            string // the observed generation; empty if nothing is written
	}{
		"pods":  {"pods get no conditions, as kubelets set their Ready condition", "", "Pod", "pods", ""},
		"nodes": {"nodes get no conditions, as unready nodes lose their pods", "", "Node", "nodes", ""},
		"deployments": {
			"deployments get no conditions, as kubectl rollout reads theirs", "apps", "Deployment", "deployments", ""},
		"ingresses": {
			"ingresses get no conditions, as their group is built in", "networking.k8s.io", "Ingress", "ingresses", ""},
		"services": {
			"services get conditions, as their list is open to all controllers",
			"", "Service", "services", "observed 0 of 1"},
		"budgets": {
			"disruption budgets get conditions, but keep the observed generation of their controller",
			"policy", "PodDisruptionBudget",
			"poddisruptionbudgets", "observed 0 of 1",
		},
		"gateways": {
			"gateways get conditions, as the Gateway API is not built in",
			"gateway.networking.k8s.io", "Gateway", "gateways",
			"observed 1 of 1",
		},
	} {
		for how, register := range map[string]func(s houseSel){"selection": registerFailingWithConditions,
			"settings": registerFailing} {
			t.Run(name+" by the "+how, func(t *testing.T) {
				withConditionFixture(t, func(r *memapi.Resource) {
					r.Group, r.Kind, r.Plural = c.group, c.kind, c.plural
				}, func(e conditionFixture) {
					way, log, stop := e.run(register, kopf.Settings{
						Conditions: how == "settings",
					})
					defer stop()
					e.checkRefusal("when the kind is found", c.observed != "", log)
					e.createHouse(map[string]any{"size": int64(1)})
					time.Sleep(time.Hour)
					e.settle()
					e.checkRefusal("after an hour of retries", c.observed != "", log)
					n, told := countStatus(way), e.summary()
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

// checkRefusal requires one log line about the kind, or none if the kind accepts conditions.
func (e conditionFixture) checkRefusal(when string, taken bool, log *lines) {
	e.t.Helper()
	told := log.with(notWrittenMessage)
	want := []string{"Kind=" + e.houses.Kind, "its conditions belong to the controllers of Kubernetes",
		"leave Conditions out for the kind"}
	if taken {
		if len(told) > 0 {
			e.t.Errorf("%s: want no log line, got %q", when, told)
		}
		return
	}
	if len(told) != 1 {
		e.t.Errorf("%s: want one log line, got %d: %q", when, len(told), told)
		return
	}
	for _, text := range want {
		if !strings.Contains(told[0], text) {
			e.t.Errorf("%s: %q lacks %q", when, told[0], text)
		}
	}
}
