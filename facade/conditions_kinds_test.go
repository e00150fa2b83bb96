package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const notWrittenMessage = "Cannot write conditions to the status of a kind"

// registerFailingWithConditions registers a handler that fails every minute, with conditions.
func registerFailingWithConditions(s kopf.Selection[*kopf.Unstructured]) {
	s.Conditions()
	registerFailing(s)
}

// registerFailing registers a handler that fails every minute.
func registerFailing(s kopf.Selection[*kopf.Unstructured]) {
	s.OnCreate("create", func(context.Context, *dynamicChange) error {
		return kopf.Temporary(errors.New("later"), time.Minute)
	})
}

// TestConditionsOfKindsWithoutThem shows that no conditions are written to a kind that cannot store them, and that
// one log line names the cause. The generation of objects does not change.
func TestConditionsOfKindsWithoutThem(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	for name, c := range map[string]struct {
		reason, why, remedy string
		edit                func(r *memapi.Resource)
	}{
		"no subresource": {
			"a kind without the status subresource gets no conditions", "its status is not a subresource",
			`add \"subresources: {status: {}}\" to version v1 of the CRD houses.test.example.org`,
			func(r *memapi.Resource) { r.StatusSubresource = false },
		},
		"no field": {
			"a kind without conditions in its schema gets no conditions", "the schema has no status.conditions",
			"add status.conditions to the schema of the CRD",
			func(r *memapi.Resource) { r.StatusFields = []string{"phase"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, c.edit, func(e conditionFixture) {
				way, log, stop := e.run(registerFailingWithConditions)
				defer stop()
				e.createHouse(map[string]any{"size": int64(1)})
				time.Sleep(time.Hour)
				e.settle()
				told := log.with(notWrittenMessage)
				if len(told) != 1 || !strings.Contains(told[0], c.why) || !strings.Contains(told[0], c.remedy) ||
					!strings.Contains(told[0], "Kind=House") {
					t.Errorf("%s: %q", c.reason, told)
				}
				for _, one := range writes(way) {
					if one != "patch houses" {
						t.Errorf("%s: %s", c.reason, one)
					}
				}
				if g := e.house().GetGeneration(); g != 1 || e.house().Object["status"] != nil {
					t.Errorf("%s: generation %d, %v", c.reason, g, e.house().Object["status"])
				}
			})
		})
	}
}

func countStatus(way *memapi.Connection) (n int) {
	for _, one := range writes(way) {
		if strings.HasSuffix(one, "/status") {
			n++
		}
	}
	return n
}
