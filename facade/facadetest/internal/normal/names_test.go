package normal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
)

// pod returns a pod with a generated name.
func pod(name, created, content string) map[string]any {
	return object("Pod", name, map[string]any{
		"generateName": "orders-", "creationTimestamp": created, "data": map[string]any{"of": content},
	})
}

func TestGeneratedNames(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []map[string]any
		want    []string // the data of each object and its normalized name
	}{
		"ByContent": {
			reason: "numbers follow the content, not the time of creation",
			objects: []map[string]any{
				pod("orders-zzz", "2026-01-01T00:00:01Z", "a"), pod("orders-aaa", "2026-01-01T00:00:00Z", "b"),
			},
			want: []string{"a orders-<1>", "b orders-<2>"},
		},
		"ByTime": {
			reason: "objects with equal content get different numbers",
			objects: []map[string]any{
				pod("orders-zzz", "2026-01-01T00:00:00Z", "a"), pod("orders-aaa", "2026-01-01T00:00:01Z", "a"),
			},
			want: []string{"a orders-<1>", "a orders-<2>"},
		},
		"Prefix": {
			reason: "a name that is the prefix of another one is not mistaken for it",
			objects: []map[string]any{
				pod("orders-a", "2026-01-01T00:00:00Z", "a"), pod("orders-ab", "2026-01-01T00:00:00Z", "b"),
			},
			want: []string{"a orders-<1>", "b orders-<2>"},
		},
		"Renamed": {
			reason:  "a name without the prefix in generateName stays",
			objects: []map[string]any{pod("mine", "2026-01-01T00:00:00Z", "a")},
			want:    []string{"a mine"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range normal.NewNames(tc.objects).NormalizeObjects(tc.objects) {
				metadata, _ := one["metadata"].(map[string]any)
				data, _ := one["data"].(map[string]any)
				got = append(got, data["of"].(string)+" "+metadata["name"].(string))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	one := pod("orders-x7", "2026-01-01T00:00:00Z", "a")
	one["metadata"].(map[string]any)["uid"] = ownerUID
	names := normal.NewNames([]map[string]any{one})
	const given = "pods/orders-x7 (" + ownerUID + ") is gone since 2026-01-01T00:00:00Z"
	const want = "pods/orders-<1> (<uid of Pod shop/orders-<1>>) is gone since <time>"
	if got := names.NormalizeText(given); got != want {
		t.Errorf("names, uids and times in a text must be replaced: got %q, want %q", got, want)
	}
	var none normal.Names
	if got := none.NormalizeText("orders-x7"); got != "orders-x7" {
		t.Errorf("empty Names must not change a text: got %q", got)
	}
}

func TestObjectsInOrder(t *testing.T) {
	all := []map[string]any{object("Pod", "b", nil), object("Database", "z", nil), object("Pod", "a", nil)}
	var got []string
	for _, one := range new(normal.Names).NormalizeObjects(all) {
		metadata, _ := one["metadata"].(map[string]any)
		got = append(got, one["kind"].(string)+" "+metadata["name"].(string))
	}
	if diff := cmp.Diff([]string{"Database z", "Pod a", "Pod b"}, got); diff != "" {
		t.Errorf("objects must be sorted by kind and name (-want, +got):\n%s", diff)
	}
}
