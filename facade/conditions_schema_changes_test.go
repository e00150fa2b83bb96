package kopf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// redefine changes the CRD of houses while the operator runs.
func (e conditionFixture) redefine(edit func(r *memapi.Resource)) {
	changed := e.houses
	edit(&changed)
	e.api.Install(changed)
	e.api.Put(definitionResource, map[string]any{"metadata": map[string]any{"name": "houses.test.example.org",
		"uid": "h"}})
}

// retried waits for that many retries of the handler and returns how often the status was written.
func (e conditionFixture) retried(way *memapi.Connection, times int) (written int) {
	way.DrainRequests()
	for range times {
		time.Sleep(time.Minute)
		e.settle()
	}
	return countStatus(way)
}

func withoutSubresource(r *memapi.Resource) { r.StatusSubresource = false }
func withoutConditions(r *memapi.Resource)  { r.StatusFields = []string{"phase"} }
func keepDefinition(*memapi.Resource)       {}

// TestConditionsFollowTheSubresource shows that conditions are written without a restart as soon as the status
// becomes a subresource, and no longer when it stops being one, as each write would be a new generation.
func TestConditionsFollowTheSubresource(t *testing.T) {
	withConditionFixture(t, withoutSubresource, func(e conditionFixture) {
		way, log, stop := e.run(registerFailingWithConditions)
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		for round := 1; round <= 2; round++ {
			if n := e.retried(way, 3); n > 0 || len(log.with(notWrittenMessage)) != round {
				t.Errorf("round %d, without the subresource: %d writes of the status, log %q",
					round, n, log.with(notWrittenMessage))
			}
			generation := e.house().GetGeneration()
			e.redefine(func(r *memapi.Resource) { r.StatusSubresource = true })
			if n := e.retried(way, 3); n < 3 || n > 4 || len(e.summary()) != 3 ||
				len(log.with(notWrittenMessage)) != round {
				t.Errorf("round %d, with the subresource: %d writes, %q, log %q",
					round, n, e.summary(), log.with(notWrittenMessage))
			}
			e.redefine(keepDefinition)
			e.retried(way, 1)
			if now := e.house().GetGeneration(); now != generation {
				t.Errorf("round %d: the generation has changed from %d to %d", round, generation, now)
			}
		}
	})
}

// TestConditionsFollowTheSchema shows how a change of the schema is detected without an event: a missing field by a
// dropped write, a restored field by reading the schema every ten minutes.
func TestConditionsFollowTheSchema(t *testing.T) {
	withConditionFixture(t, nil, func(e conditionFixture) {
		way, log, stop := e.run(registerFailingWithConditions)
		defer stop()
		e.createHouse(map[string]any{"size": int64(1)})
		e.redefine(withoutConditions)
		if n := e.retried(way, 10); n != 1 {
			t.Errorf("one dropped write is enough to detect the schema: got %d", n)
		}
		if told := log.with(notWrittenMessage); len(told) != 1 || !strings.Contains(told[0], "did not keep them") {
			t.Errorf("a dropped write is logged once: got %q", told)
		}
		if n := e.retried(way, 30); n > 0 || len(e.summary()) != 1 {
			t.Errorf("without the field in the schema, nothing is written: got %d writes, %q", n, e.summary())
		}
		told := log.with(notWrittenMessage)
		if len(told) != 2 || !strings.Contains(told[1], "the schema has no status.conditions") {
			t.Errorf("the second log line names the missing field: got %q", told)
		}
		e.redefine(keepDefinition)
		if n := e.retried(way, 12); n == 0 || n > 12 || len(e.summary()) != 3 {
			t.Errorf("with the field in the schema, conditions are written: got %d writes, %q", n, e.summary())
		}
		if again := log.with(notWrittenMessage); len(again) != len(told) {
			t.Errorf("with the field in the schema, nothing is logged: got %q", again)
		}
	})
}
