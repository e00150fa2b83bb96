package kopf_test

import (
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// TestProgramsWithBadPeerings shows that programs continue with an invalid peering: they act, or wait until it is
// repaired, and end gracefully. Package attendance shows their log lines.
func TestProgramsWithBadPeerings(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	peer := func(key string, value any) map[string]any {
		record := map[string]any{"priority": int64(9), "lifetime": int64(60), "lastseen": "2345-01-01T00:00:00Z"}
		record[key] = value
		return map[string]any{"him": record}
	}
	lasting := func(seconds int64) map[string]any {
		return map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": seconds, "lastseen": "2000-01-01T00:00:00Z", // when virtual time begins
		}}
	}
	for name, c := range map[string]struct {
		reason     string
		status     any
		mandatory  bool
		prepare    func(*memapi.Server) // done before the program starts
		wantActive bool
	}{
		"status":   {"a status without records is ignored", "x", false, nil, true},
		"record":   {"a record that is not an object is ignored", map[string]any{"him": "here"}, false, nil, true},
		"priority": {"a record with an invalid priority is ignored", peer("priority", "high"), true, nil, true},
		"future":   {"a record with a future time pauses the operator", peer("priority", int64(9)), false, nil, false},
		"low": {"a record of lower priority is ignored, even with a future time",
			peer("priority", int64(-1)), false, nil, true},
		"list":     {"a list instead of records is ignored", []any{peer("priority", int64(9))}, true, nil, true},
		"null":     {"a record that is null is ignored", map[string]any{"him": nil}, true, nil, true},
		"time":     {"a record with an invalid time is ignored", peer("lastseen", "yesterday"), true, nil, true},
		"no time":  {"a record whose time is null is ignored", peer("lastseen", nil), true, nil, true},
		"lifetime": {"a record with an invalid lifetime is ignored", peer("lifetime", "long"), true, nil, true},
		"over":     {"a record with a lifetime of zero is ignored", lasting(0), true, nil, true},
		"negative": {"a record with a negative lifetime is ignored", lasting(-1), true, nil, true},
		"for ever": {"a record with an extremely long lifetime pauses the operator", lasting(1 << 62), true, nil,
			false},
		"own": {"an invalid own record is overwritten", map[string]any{"me": "here"}, true, nil, true},
		"no kind": {"the operator waits for the kind of a mandatory peering", nil, true, func(server *memapi.Server) {
			server.Discard(peerings, "", "shared")
			server.Remove(peerings.Group, peerings.Plural)
		}, false},
		"no object": {"the operator waits for the object of a mandatory peering", nil, true,
			func(server *memapi.Server) {
				server.Discard(peerings, "", "shared")
			}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShared(t)
				put := func(status any) {
					named := map[string]any{"name": "shared"}
					s.server.Put(peerings, map[string]any{"metadata": named, "status": status})
				}
				if put(c.status); c.prepare != nil {
					c.prepare(s.server)
				}
				stop := s.program(s.operator("me", 0, func(settings *kopf.Settings) {
					settings.Peering.Mandatory = c.mandatory
				}))
				time.Sleep(time.Minute)
				if s.acted() != c.wantActive {
					t.Errorf("%s: the operator acts: %t", c.reason, s.acted())
				}
				s.server.Install(peerings)
				put(nil)
				time.Sleep(2 * time.Minute)
				if s.want("me create 1"); s.records()["me"] == nil {
					t.Error("the operator must write its record after the repair")
				}
				s.server.Discard(peerings, "", "shared")
				time.Sleep(2 * time.Minute)
				s.resize(2)
				time.Sleep(time.Minute)
				if c.mandatory {
					s.want("me create 1")
				} else {
					s.want("me create 1", "me update 2")
				}
				if err := stop(); err != nil {
					t.Errorf("the program must end gracefully: %v", err)
				}
			})
		})
	}
}

// acted returns whether any handler was called.
func (s *sharedPeering) acted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}
