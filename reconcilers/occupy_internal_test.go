package reconcilers

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// elected is all that is asked of a manager here.
type elected struct {
	manager.Manager
	channel chan struct{}
}

func (e elected) Elected() <-chan struct{} { return e.channel }

func TestOccupy(t *testing.T) {
	here, there := elected{channel: make(chan struct{})}, elected{channel: make(chan struct{})}
	named := func(name, prefix string, m manager.Manager) *engine {
		return &engine{Options: Options{Name: name, Prefix: prefix}, manager: m}
	}
	v2 := widgets
	v2.GroupVersionKind = schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Widget"}
	others := widgets
	others.Plural = "others"
	tests := map[string]struct {
		reason string
		by     *engine
		of     Resource
		want   string
	}{
		"Taken": {
			"they would take each other's memory for their own", named("two", "p", here), widgets,
			`operator "one" of this process does already`,
		},
		"OtherVersion": {
			"the versions of a kind are the same objects", named("one", "p", here), v2,
			"it handles the same objects as example.org/v1, Kind=Widget",
		},
		"BothOther": {
			"whoever handles them", named("two", "p", here), v2, `operator "one" of this process does already`,
		},
		"OtherPrefix":  {"each has its own memory", named("two", "q", here), widgets, ""},
		"OtherPlural":  {"other objects", named("two", "p", here), others, ""},
		"OtherManager": {"maybe another cluster", named("one", "p", there), widgets, ""},
	}
	leave, err := named("one", "p", here).occupy(widgets)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			leave, err := tc.by.occupy(tc.of)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			case err == nil:
				leave()
			}
		})
	}
	leave()
	if leave, err = named("two", "p", here).occupy(widgets); err != nil {
		t.Fatalf("a resource that was left is free: %v", err)
	}
	leave()
}
