package kopf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// TestConditionsOfKindsThatDropThem shows that conditions that the API server drops are logged once, are not
// written for ten minutes, and are written again when the API server keeps them.
func TestConditionsOfKindsThatDropThem(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		e.api.SetAdmission(memapi.Admission{Mutate: func(_ memapi.Resource, object map[string]any) {
			delete(object, "status")
		}})
		way, log, stop := e.run(registerFailingWithConditions)
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		for range 8 {
			time.Sleep(time.Minute)
			e.settle()
		}
		if told := log.with(notWrittenMessage); len(told) != 1 || !strings.Contains(told[0], "did not keep them") {
			t.Errorf("the log reports dropped conditions once: got %q", told)
		}
		if n := countStatus(way); n != 1 {
			t.Errorf("after one dropped write, the status is not written: got %d writes", n)
		}
		e.api.SetAdmission(memapi.Admission{})
		time.Sleep(3 * time.Minute)
		e.settle()
		if told := e.summary(); len(told) != 3 || !strings.HasPrefix(told[0], "Ready=False Retrying@1") {
			t.Errorf("conditions are written when the API server keeps them: got %q", told)
		}
	})
}

func countStatus(way *memapi.Connection) (n int) {
	for _, one := range writes(way) {
		if strings.HasSuffix(one, "/status") {
			n++
		}
	}
	return n
}

// TestConditionsThatAreRefused shows that refused conditions do not prevent the handler's own writes and the end of
// the change.
func TestConditionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		reason    string
		refuse    func(status string) error
		maxWrites int // writes of the status in half an hour
	}{
		"no right": {"a forbidden status write is logged once, and the change ends", func(string) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "houses"}, "home", errors.New("no rule"))
		}, 15},
		"a condition that does not fit": {
			"an invalid condition is logged once, and the change ends", func(status string) error {
				if !strings.Contains(status, "conditions") {
					return nil
				}
				return apierrors.NewInvalid(schema.GroupKind{Kind: "House"}, "home", nil)
			}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			withConditionFixture(t, nil, func(e conditionFixture) {
				register := func(s kopf.Selection[*kopf.Unstructured]) {
					s.Conditions()
					s.OnCreate("create", func(_ context.Context, c *dynamicChange) error {
						c.SetResult(map[string]any{"size": int64(c.Retry)})
						if c.Retry < 3 {
							return kopf.Temporary(errors.New("later"), time.Minute)
						}
						return nil
					})
				}
				way, log, stop := e.run(register)
				defer stop()
				way.Before = func(_ context.Context, r memapi.Request) error {
					if r.Verb != "patch" || r.Subresource != "status" {
						return nil
					}
					return c.refuse(string(r.Body))
				}
				e.createHouse(map[string]any{"size": int64(1)})
				time.Sleep(30 * time.Minute)
				e.settle()
				if told := log.with(notWrittenMessage); len(told) != 1 {
					t.Errorf("%s: %q", c.reason, told)
				}
				if n := countStatus(way); n == 0 || n > c.maxWrites {
					t.Errorf("%s: %d writes of the status", c.reason, n)
				}
				house := e.house()
				if house.GetAnnotations()["test.example.org/last-handled-configuration"] == "" {
					t.Errorf("%s: the creation has not ended: %v", c.reason, house.Object)
				}
				size := kopf.GetFieldOr(house, "status.create.size", int64(-1))
				if mayHave := name != "no right"; mayHave != (size == 3) {
					t.Errorf("%s: the result of the handler is %d", c.reason, size)
				}
			})
		})
	}
}

// TestConditionsOfAnotherShape shows that conditions of an unexpected type are kept, and that other objects of the
// kind get conditions.
func TestConditionsOfAnotherShape(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	withConditionFixture(t, nil, func(e conditionFixture) {
		odd := map[string]any{"conditions": map[string]any{"Ready": "yes"}}
		e.api.Put(e.houses, map[string]any{
			"metadata": map[string]any{"name": "odd", "namespace": "default"}, "status": odd,
		})
		way, log, stop := e.run(registerFailingWithConditions)
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		time.Sleep(time.Hour)
		e.settle()
		if d := cmp.Diff(any(odd), e.api.Object(e.houses, "default", "odd")["status"]); d != "" {
			t.Errorf("conditions of another type are kept: -want, +got:\n%s", d)
		}
		for _, r := range way.Requests() {
			if r.Name == "odd" && r.Subresource == "status" {
				t.Errorf("conditions of another type are not written: got %s", r.Body)
			}
		}
		if told := e.summary(); len(told) != 3 || len(log.with(notWrittenMessage)) > 1 {
			t.Errorf("other objects get conditions: got %q, log %q", told, log.with(notWrittenMessage))
		}
	})
}
