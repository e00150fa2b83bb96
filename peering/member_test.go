package peering_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/peering"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// liveRecord returns the record of a live operator.
func liveRecord(priority int, runtime string) peering.PeerRecord {
	return peering.PeerRecord{Priority: priority, Lifetime: time.Minute, LastSeen: testTime.Add(-time.Second),
		Runtime: runtime}
}

func TestJudgeAmongEquals(t *testing.T) {
	t.Parallel()
	const ours = "kopf-runtime"
	for name, c := range map[string]struct {
		elects bool
		others map[string]peering.PeerRecord
		want   []string
	}{
		"all pause, as in Kopf": {
			false, map[string]peering.PeerRecord{"z": liveRecord(0, ours)}, []string{"z"},
		},
		"the smallest identity acts": {
			true, map[string]peering.PeerRecord{"z": liveRecord(0, ours)}, nil,
		},
		"the others wait for the smallest": {
			true, map[string]peering.PeerRecord{"a": liveRecord(0, ours), "z": liveRecord(0, ours)}, []string{"a"},
		},
		"a peer of Kopf pauses for us, so we do for it": {
			true, map[string]peering.PeerRecord{"z": liveRecord(0, "")}, []string{"z"},
		},
		"a higher priority acts, whatever its identity": {
			true, map[string]peering.PeerRecord{"z": liveRecord(1, ours)}, []string{"z"},
		},
		"a lower priority does not, whatever its identity": {
			true, map[string]peering.PeerRecord{"a": liveRecord(-1, ours)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict := peering.JudgeRecords(peering.Self{Identity: "m", Elects: c.elects}, c.others, testTime)
			if delta := cmp.Diff(c.want, verdict.Blockers); delta != "" {
				t.Errorf("the operator m has wrong blockers, -want, +got:\n%s", delta)
			}
		})
	}
}

// TestOneOfOursActs shows that exactly one of all operators in a status acts.
func TestOneOfOursActs(t *testing.T) {
	t.Parallel()
	records := map[string]peering.PeerRecord{
		"b": liveRecord(5, "x"), "a": liveRecord(5, "x"), "c": liveRecord(5, "x"), "d": liveRecord(3, "x"),
	}
	var acting []string
	for identity, own := range records {
		self := peering.Self{Identity: identity, Priority: own.Priority, Elects: true}
		if !peering.JudgeRecords(self, records, testTime).IsPaused() {
			acting = append(acting, identity)
		}
	}
	if delta := cmp.Diff([]string{"a"}, acting); delta != "" {
		t.Errorf("want the smallest identity of the highest priority alone, -want, +got:\n%s", delta)
	}
}

// TestGroups shows that replicas that share the objects do not pause for each other, act or pause together among peers
// of the same priority, and pause for a higher priority.
func TestGroups(t *testing.T) {
	t.Parallel()
	member := func(priority int, group string) peering.PeerRecord {
		record := liveRecord(priority, "x")
		record.Group = group
		return record
	}
	for name, c := range map[string]struct {
		others map[string]peering.PeerRecord
		acts   []string
	}{
		"Alone":  {nil, []string{"a", "d"}},
		"Older":  {map[string]peering.PeerRecord{"b": liveRecord(0, "x")}, []string{"b"}},
		"Newer":  {map[string]peering.PeerRecord{"z": liveRecord(0, "x")}, []string{"a", "d"}},
		"Other":  {map[string]peering.PeerRecord{"z": member(0, "other"), "y": member(0, "other")}, []string{"a", "d"}},
		"Above":  {map[string]peering.PeerRecord{"z": liveRecord(1, "x")}, []string{"z"}},
		"Sooner": {map[string]peering.PeerRecord{"z": member(1, "group")}, []string{"z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := map[string]peering.PeerRecord{"a": member(0, "group"), "d": member(0, "group")}
			maps.Copy(records, c.others)
			var acting []string
			for _, identity := range slices.Sorted(maps.Keys(records)) {
				own := records[identity]
				self := peering.Self{Identity: identity, Priority: own.Priority, Group: own.Group, Elects: true}
				if !peering.JudgeRecords(self, records, testTime).IsPaused() {
					acting = append(acting, identity)
				}
			}
			if delta := cmp.Diff(c.acts, acting); delta != "" {
				t.Errorf("the wrong operators act, -want, +got:\n%s", delta)
			}
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record any
		want   string // a part of the error
	}{
		"null":                      {nil, `record of "him": it is a <nil>`},
		"text":                      {"x", `record of "him": it is a string`},
		"a priority as a text":      {map[string]any{"priority": "1"}, `"him": field priority: 1 is not a whole`},
		"a fraction of a priority":  {map[string]any{"priority": 1.5}, `"him": field priority`},
		"a lifetime of words":       {map[string]any{"lifetime": "long"}, `"him": field lifetime: "long"`},
		"a lifetime that is a list": {map[string]any{"lifetime": []any{}}, `"him": field lifetime`},
		"a time that is a number":   {map[string]any{"lastseen": int64(5)}, `"him": field lastseen: it is a int64`},
		"a time of words":           {map[string]any{"lastseen": "now"}, `"him": field lastseen`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := map[string]any{"status": map[string]any{"him": c.record, "her": map[string]any{}}}
			records, err := peering.DecodeRecords(object, testTime)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %s in it", err, c.want)
			}
			if _, ok := records["her"]; !ok || len(records) != 1 {
				t.Errorf("only the well-formed record must be read, got %v", records)
			}
		})
	}
	if _, err := peering.DecodeRecords(map[string]any{"status": "x"}, testTime); err == nil {
		t.Error("a status that is a text must be an error")
	}
}

func TestDecodeLifetimes(t *testing.T) {
	t.Parallel()
	century := 100 * 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		value any
		want  time.Duration
	}{
		"a number":        {int64(30), 30 * time.Second},
		"a fraction":      {30.9, 30 * time.Second},
		"a text":          {" 30 ", 30 * time.Second},
		"below zero":      {int64(-1), -time.Second},
		"beyond all time": {1e300, century},
		"the longest int": {int64(1<<63 - 1), century},
	} {
		object := map[string]any{"status": map[string]any{"him": map[string]any{"lifetime": c.value}}}
		records, err := peering.DecodeRecords(object, testTime)
		if err != nil || records["him"].Lifetime != c.want {
			t.Errorf("%s: %v gives %s, %v", name, c.value, records["him"].Lifetime, err)
		}
	}
}

// TestReactionGoesOnAfterErrors shows that an operator still pauses for its peer if the peering object is missing.
func TestReactionGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemberFixture(t, vectors.Fields{}, peering.Member{Self: peering.Self{Identity: "me"}, KopfRules: true})
		b.connection.Before = func(context.Context, memapi.Request) error { return memapi.NewRefusal(404) }
		object := map[string]any{
			"metadata": map[string]any{"name": "default"},
			"status": map[string]any{
				"dead": map[string]any{"lifetime": int64(0)}, "broken": nil,
				"him": map[string]any{"priority": int64(9)},
			},
		}
		began := time.Now()
		time.AfterFunc(peering.DefaultLifetime-1, func() {
			if !b.gate.closed.Load() {
				t.Error("the operator does not pause for its peer")
			}
		})
		err := b.member.React(t.Context(), object)
		text := fmt.Sprint(err)
		if !strings.Contains(text, "expired records") || !strings.Contains(text, `record of "me"`) {
			t.Errorf("want the errors of both writes, got %v", err)
		}
		if took := time.Since(began); took != peering.DefaultLifetime {
			t.Errorf("the reaction took %s, want the lifetime of the peer", took)
		}
	})
}

// TestKeepAliveGoesOnAfterErrors shows that the record is still renewed if the API server refuses every second
// request.
func TestKeepAliveGoesOnAfterErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemberFixture(t, vectors.Fields{}, peering.Member{
			Self: peering.Self{Identity: "me"}, Busy: func() int { return 2 },
		})
		count := 0
		b.connection.Before = func(context.Context, memapi.Request) error {
			if count++; count%2 == 1 {
				return memapi.NewRefusal(500)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		time.AfterFunc(4*time.Minute, func() {
			status, _ := b.server.Object(b.resource, "", "default")["status"].(map[string]any)
			own, _ := status["me"].(map[string]any)
			if own["runtime"] != "kopf-runtime" || own["busy"] != int64(3) {
				t.Errorf("the record must report two attempts and one in reserve, got %v", own)
			}
		})
		b.member.Run(ctx)
		if count < 6 {
			t.Errorf("there were %d requests in 5 minutes", count)
		}
	})
}
