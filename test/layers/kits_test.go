package layers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestKits(t *testing.T) {
	plan := layers.Plan{
		{Dir: "ground/internal/deep", Layer: 0},
		{Dir: "ground", Layer: 1},
		{Dir: "kit", Layer: 2, IsTestKit: true},
		{Dir: "kit/more", Layer: 1},
		{Dir: "kit/marked", Layer: 1, IsTestKit: true},
		{Dir: "test/...", Layer: 3, IsTestKit: true, GroupsByFolder: true},
	}
	uses := func(name, what string) string { return "package " + name + "\nimport _ \"" + what + "\"\n" }
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"InTheFolder": {
			reason: "what belongs to a kit is as unwelcome in products as the kit",
			files:  map[string]string{"kit/more/a.go": "package more\n"},
			want:   []string{"kit/more: it stands in the folder of the test kit kit: mark it with Kit"},
		},
		"ForKitsOnly": {
			reason: "a package that no product needs would slip into products unnoticed",
			files: map[string]string{
				"ground/internal/deep/a.go": "package deep\n", "kit/a.go": uses("kit", "m/ground/internal/deep"),
				"ground/a_test.go": uses("ground", "m/ground/internal/deep"),
			},
			want: []string{"ground/internal/deep: only test kits import it: mark it with Kit"},
		},
		"ForBoth": {
			reason: "a package that products import is not a kit",
			files: map[string]string{
				"ground/internal/deep/a.go": "package deep\n", "kit/a.go": uses("kit", "m/ground/internal/deep"),
				"ground/a.go": uses("ground", "m/ground/internal/deep"),
			},
		},
		"Nested": {
			reason: "a module of its own is linked into products as well; its tests are not",
			files: map[string]string{
				"other/go.mod": "module m/other\n", "other/a.go": uses("other", "m/kit/marked"),
				"other/a_test.go": uses("other", "m/kit/marked"),
			},
			want: []string{"other/a.go:2: other imports the test kit kit/marked outside of tests"},
		},
		"NestedTests": {
			reason: "modules of tests may use all kits",
			files:  map[string]string{"test/e/go.mod": "module m/e\n", "test/e/a.go": uses("e", "m/kit/marked")},
		},
		"AsPlanned": {
			reason: "kits that are marked may stand and import where they like",
			files:  map[string]string{"kit/marked/a.go": "package marked\n", "kit/a.go": uses("kit", "m/kit/marked")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := layers.CheckTestKits(load(t, tc.files), plan)
			if diff := cmp.Diff(tc.want, texts(got), prefixes()); diff != "" {
				t.Errorf("%s\nKits(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
