package codec_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// listing is an object of an older version: in the cluster, its items have fields that these types do not have.
type listing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec listingSpec `json:"spec"`
}

func (l *listing) DeepCopyObject() runtime.Object { return codec.DeepCopy(l) }

type listingSpec struct {
	Named  []named   `json:"named,omitempty"`
	Plain  []plain   `json:"plain,omitempty"`
	Tagged []tagged  `json:"tagged,omitempty" patchMergeKey:"port"`
	Routes []route   `json:"routes,omitempty"`
	Typed  []typed   `json:"typed,omitempty"`
	Ports  []port    `json:"ports,omitempty"`
	Nested [][]plain `json:"nested,omitempty"`
	Free   any       `json:"free,omitempty"`
}

type named struct {
	Name  string  `json:"name"`
	Size  int     `json:"size,omitempty"`
	Parts []named `json:"parts,omitempty"`
}

type plain struct {
	Size int `json:"size,omitempty"`
}

type tagged struct {
	Name     string `json:"name,omitempty"`
	Port     int    `json:"port"`
	Protocol string `json:"protocol,omitempty"`
}

type route struct {
	Host string `json:"host"`
	Path string `json:"path"`
	Size int    `json:"size,omitempty"`
}

type typed struct {
	Type string `json:"type"`
	Size int    `json:"size,omitempty"`
}

type port struct {
	Port     int    `json:"port"`
	Protocol string `json:"protocol,omitempty"`
	Size     int    `json:"size,omitempty"`
}

func listingCodec() *codec.Codec[*listing] { return codec.New[*listing](reflect.TypeFor[listing]()) }

// changeList changes an object with one list in its spec, as a patch and in place, and returns the changed list.
func changeList(t *testing.T, field string, items []any, change func(s *listingSpec), lists codec.Lists) any {
	t.Helper()
	body := object{"metadata": object{"name": "l"}, "spec": object{field: items}}
	before := diff.DeepCopy(body)
	transform := listingCodec().Transform(func(l *listing) { change(&l.Spec) }, lists)
	if err := transform(body); err != nil {
		t.Fatal(err)
	}
	changed, _ := diff.ResolvePath(body, diff.Path{"spec", field})
	old, ok := before.(object)
	if !ok {
		t.Fatal("an object is a mapping")
	}
	object, err := listingCodec().Decode(old)
	if err != nil {
		t.Fatal(err)
	}
	text, err := listingCodec().JSONText(object)
	if err != nil {
		t.Fatal(err)
	}
	change(&object.Spec)
	edits, err := listingCodec().EditTransform(text, object, lists)
	if err != nil {
		t.Fatal(err)
	}
	if edits != nil {
		if err := edits(old); err != nil {
			t.Fatal(err)
		}
	}
	if !diff.Equal(body, old) {
		t.Errorf("a change in place must equal a patch, -patch, +in place:\n%s", cmp.Diff(body, old))
	}
	return changed
}

type listCase struct {
	reason string
	field  string
	items  []any
	change func(s *listingSpec)
	want   []any
	lost   []string
}

func (tc listCase) run(t *testing.T) {
	var lost []string
	asked := false
	got := changeList(t, tc.field, tc.items, tc.change, codec.Lists{
		Keys: func(list diff.Path) []string {
			asked = true
			if slices.Equal(list, diff.Path{"spec", "routes"}) {
				return []string{"host", "path"}
			}
			return nil
		},
		OnLost: func(fields []string) { lost = fields },
	})
	if d := cmp.Diff(any(tc.want), got); d != "" {
		t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
	}
	if d := cmp.Diff(tc.lost, lost); d != "" {
		t.Errorf("%s: lost fields: -want, +got:\n%s", tc.reason, d)
	}
	if tc.field == "tagged" && asked {
		t.Errorf("%s: the schema was read despite the tag", tc.reason)
	}
}

func TestIdentifiedListItems(t *testing.T) {
	one, two := int64(1), int64(2)
	cases := map[string]listCase{
		"RemovedAndChanged": {
			reason: "an item keeps its fields when the one before it is removed", field: "named",
			items:  []any{object{"name": "a", "novel": one}, object{"name": "b", "novel": two}},
			change: func(s *listingSpec) { s.Named[1].Size = 9; s.Named = s.Named[1:] },
			want:   []any{object{"name": "b", "novel": two, "size": int64(9)}},
		},
		"Renamed": {
			reason: "a renamed item is a new item", field: "named",
			items:  []any{object{"name": "a", "novel": one}},
			change: func(s *listingSpec) { s.Named[0].Name = "b" },
			want:   []any{object{"name": "b"}},
		},
		"Duplicated": {
			reason: "of two items with the same name, the unchanged one keeps its fields", field: "named",
			items:  []any{object{"name": "a", "novel": one}, object{"name": "b", "novel": two}},
			change: func(s *listingSpec) { s.Named = append([]named{{Name: "a", Size: 9}}, s.Named...) },
			want: []any{
				object{"name": "a", "size": int64(9)}, object{"name": "a", "novel": one},
				object{"name": "b", "novel": two},
			},
		},
		"DuplicatedAndChanged": {
			reason: "the fields are lost if both items with the same name are changed", field: "named",
			items:  []any{object{"name": "a", "novel": one}, object{"name": "b", "novel": two}},
			change: func(s *listingSpec) { s.Named = []named{{Name: "a", Size: 8}, {Name: "a", Size: 9}} },
			want:   []any{object{"name": "a", "size": int64(8)}, object{"name": "a", "size": int64(9)}},
			lost:   []string{"spec.named.novel"},
		},
		"Inner": {
			reason: "lists within items are merged by the same rules", field: "named",
			items: []any{object{"name": "a", "parts": []any{
				object{"name": "x", "novel": one}, object{"name": "y", "novel": two},
			}}},
			change: func(s *listingSpec) { s.Named[0].Parts[1].Size = 9; s.Named[0].Parts = s.Named[0].Parts[1:] },
			want:   []any{object{"name": "a", "parts": []any{object{"name": "y", "novel": two, "size": int64(9)}}}},
		},
		"Tagged": {
			reason: "the merge key of the tag wins over the name", field: "tagged",
			items: []any{
				object{"name": "a", "port": one, "novel": one}, object{"name": "b", "port": two, "novel": two},
			},
			change: func(s *listingSpec) { s.Tagged = []tagged{{Name: "a", Port: 2}} },
			want:   []any{object{"name": "a", "port": two, "novel": two}},
		},
		"TaggedTwice": {
			reason: "items with the same port and different protocols are different items", field: "tagged",
			items: []any{
				object{"port": one, "protocol": "TCP", "novel": one},
				object{"port": one, "protocol": "UDP", "novel": two},
			},
			change: func(s *listingSpec) { s.Tagged[1].Name = "b"; s.Tagged = s.Tagged[1:] },
			want:   []any{object{"name": "b", "port": one, "protocol": "UDP", "novel": two}},
		},
		"Schema": {
			reason: "the keys of the schema identify an item together", field: "routes",
			items: []any{
				object{"host": "h", "path": "a", "novel": one}, object{"host": "h", "path": "b", "novel": two},
			},
			change: func(s *listingSpec) { s.Routes[1].Size = 9; s.Routes = s.Routes[1:] },
			want:   []any{object{"host": "h", "path": "b", "novel": two, "size": int64(9)}},
		},
		"Port": {
			reason: "an item without a protocol is identified, too", field: "ports",
			items:  []any{object{"port": one, "novel": one}, object{"port": one, "protocol": "UDP", "novel": two}},
			change: func(s *listingSpec) { s.Ports[0].Size, s.Ports[1].Size = 8, 9; slices.Reverse(s.Ports) },
			want: []any{
				object{"port": one, "protocol": "UDP", "novel": two, "size": int64(9)},
				object{"port": one, "novel": one, "size": int64(8)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.run)
	}
}

func TestListItemsWithoutKeys(t *testing.T) {
	one, two := int64(1), int64(2)
	pair := []any{object{"size": one, "novel": one}, object{"size": two, "novel": two}}
	equal := []any{object{"size": one, "novel": one}, object{"size": one, "novel": two}}
	for name, tc := range map[string]listCase{
		"InPlace": {
			reason: "an unchanged length identifies items by their position", items: pair,
			change: func(s *listingSpec) { s.Plain[0].Size, s.Plain[1].Size = 8, 9 },
			want:   []any{object{"size": int64(8), "novel": one}, object{"size": int64(9), "novel": two}},
		},
		"Removed": {
			reason: "an unchanged item keeps its fields when another one is removed", items: pair,
			change: func(s *listingSpec) { s.Plain = s.Plain[1:] },
			want:   []any{object{"size": two, "novel": two}},
		},
		"RemovedAndChanged": {
			reason: "the fields are lost if the changed item can be either of two", items: pair,
			change: func(s *listingSpec) { s.Plain[1].Size = 9; s.Plain = s.Plain[1:] },
			want:   []any{object{"size": int64(9)}}, lost: []string{"spec.plain.novel"},
		},
		"Shifted": {
			reason: "a moved item makes positions unreliable, so the changed item loses its fields", items: pair,
			change: func(s *listingSpec) { s.Plain = []plain{{Size: 2}, {Size: 9}} },
			want:   []any{object{"size": two, "novel": two}, object{"size": int64(9)}},
			lost:   []string{"spec.plain.novel"},
		},
		"Added": {
			reason: "an added item does not inherit fields", items: pair,
			change: func(s *listingSpec) { s.Plain = append([]plain{{Size: 9}}, s.Plain...) },
			want: []any{
				object{"size": int64(9)}, object{"size": one, "novel": one}, object{"size": two, "novel": two},
			},
		},
		"OneOfEqual": {
			reason: "the fields are lost if one of two equal items is removed", items: equal,
			change: func(s *listingSpec) { s.Plain = s.Plain[1:] },
			want:   []any{object{"size": one}}, lost: []string{"spec.plain.novel"},
		},
		"Nothing": {
			reason: "a zero field is not reported as lost", items: []any{object{"size": int64(0)}, object{"size": two}},
			change: func(s *listingSpec) { s.Plain[1].Size = 9; s.Plain = s.Plain[1:] },
			want:   []any{object{"size": int64(9)}},
		},
		"Null": {
			reason: "a null in a list counts as an item", items: []any{nil, object{"size": two, "novel": two}},
			change: func(s *listingSpec) { s.Plain[1].Size = 9 },
			want:   []any{nil, object{"size": int64(9), "novel": two}},
		},
	} {
		tc.field = "plain"
		t.Run(name, tc.run)
	}
	t.Run("Nested", listCase{
		reason: "items of nested lists are identified by their position", field: "nested", items: []any{pair, equal},
		change: func(s *listingSpec) { s.Nested[0][1].Size = 9 },
		want: []any{
			[]any{object{"size": one, "novel": one}, object{"size": int64(9), "novel": two}}, equal,
		},
	}.run)
}
