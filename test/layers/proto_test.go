package layers_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestProto(t *testing.T) {
	tree, err := layers.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tree.Packages {
		if strings.HasPrefix(p.Dir, "examples") || strings.HasPrefix(p.Dir, "test/") {
			continue
		}
		a, err := layers.FileArrows(os.DirFS("../.."), p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.All) > 0 {
			t.Logf("%3d%% %3d of %3d %s", 100*len(a.Upward)/len(a.All), len(a.Upward), len(a.All), p.Dir)
		}
		if os.Getenv("DIR") == p.Dir {
			for _, f := range a.Order {
				t.Log(f)
			}
			for _, w := range a.Upward {
				t.Logf("%s -> %s: %v", w.From, w.To, w.Names)
			}
		}
	}
}
