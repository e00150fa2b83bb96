package clusterneeds_test

import (
	"strings"
	"testing"
)

// TestShards shows whether the API server sends ranges of objects, for an operator whose replicas share them.
func TestShards(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		shards  int
		ignores bool
		refused string
		want    string
	}{
		"None":    {"an operator without sharding needs no ranges", 0, true, "", ""},
		"Sends":   {"a server with the feature gate sends ranges, also without objects", 16, false, "", ""},
		"Ignores": {"another server sends all objects for each range", 16, true, "", "warning: sharding 16 ranges"},
		"Refused": {"without the right to list, it is unknown", 16, false, "/widgets", "unknown: sharding 16 ranges"},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := newCluster(t, widgets), operatorOf(t, "example.org/v1", "widgets")
			if tc.ignores {
				c.server.IgnoreShardSelector()
			}
			c.refused, o.Shards, o.Namespace = tc.refused, tc.shards, "ops"
			got := strings.Join(problems(t, c, o), "\n")
			if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
			if name == "None" && strings.Contains(strings.Join(c.requests, "\n"), "/widgets") {
				t.Errorf("%s: no objects are listed, got the requests %q", tc.reason, c.requests)
			}
		})
	}
}
