package kopf_test

import (
	"testing"
	"testing/synctest"
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Whole programs go on whatever is wrong with their peering: they act, or wait until it is mended, and end gracefully.
// What they log is shown in package attendance.
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
		reason    string
		status    any
		mandatory bool
		wrong     func(*memapi.Server) // done before the program starts
		acts      bool
	}{
		"status":   {"there are no records in it", "x", false, nil, true},
		"record":   {"nobody is in it", map[string]any{"him": "here"}, false, nil, true},
		"priority": {"nobody knows who comes first", peer("priority", "high"), true, nil, true},
		"future":   {"a peer of Kopf is believed", peer("priority", int64(9)), false, nil, false},
		"low": {"it would pause for us, whenever it is",
			peer("priority", int64(-1)), false, nil, true},
		"list":     {"there are no records in it", []any{peer("priority", int64(9))}, true, nil, true},
		"null":     {"nobody is in it", map[string]any{"him": nil}, true, nil, true},
		"time":     {"nobody knows until when it is good", peer("lastseen", "yesterday"), true, nil, true},
		"no time":  {"a peer of Kopf without a time is there now", peer("lastseen", nil), true, nil, true},
		"lifetime": {"nobody knows until when it is good", peer("lifetime", "long"), true, nil, true},
		"over":     {"it is good for no time", lasting(0), true, nil, true},
		"negative": {"it is good for no time", lasting(-1), true, nil, true},
		"for ever": {"it is good for a century", lasting(1 << 62), true, nil, false},
		"own":      {"it is written anew", map[string]any{"me": "here"}, true, nil, true},
		"no kind": {"it may come", nil, true, func(server *memapi.Server) {
			server.Discard(peerings, "", "shared")
			server.Remove(peerings.Group, peerings.Plural)
		}, false},
		"no object": {"it may come", nil, true, func(server *memapi.Server) {
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
				if put(c.status); c.wrong != nil {
					c.wrong(s.server)
				}
				stop := s.program(s.operator("me", 0, func(settings *kopf.Settings) {
					settings.Peering.Mandatory = c.mandatory
				}))
				time.Sleep(time.Minute)
				if s.acted() != c.acts {
					t.Errorf("%s: it acts: %t", c.reason, s.acted())
				}
				s.server.Install(peerings)
				put(nil)
				time.Sleep(2 * time.Minute)
				if s.want("me create 1"); s.records()["me"] == nil {
					t.Error("it is mended, and there is no record")
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
					t.Errorf("it ends gracefully: %v", err)
				}
			})
		})
	}
}

// acted tells whether any handler was called.
func (s *shared) acted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}
