package layers_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

// samplePlan is a plan with one of everything.
var samplePlan = layers.Plan{
	{Dir: "ground", Layer: 0, AllowedImports: []string{"example.com/allowed"}},
	{Dir: "cellar", Layer: 0},
	{Dir: "fake", Layer: 0, IsTestKit: true},
	{Dir: "middle", Layer: 1},
	{Dir: "middle/kit", Layer: 2, IsTestKit: true},
	{Dir: "roof", Layer: 2},
	{Dir: "examples/...", Layer: 3, GroupsByFolder: true},
	{Dir: "test/...", Layer: 4, IsTestKit: true, GroupsByFolder: true},
}

func TestWalls(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Upwards": {
			reason: "a package must not import packages of a higher layer",
			files:  map[string]string{"ground/a.go": "package ground\n\nimport \"m/roof\"\n"},
			want:   []string{"ground/a.go:3: ground (layer 0) imports roof"},
		},
		"Sideways": {
			reason: "neighbours of one layer must be replaceable one by one",
			files:  map[string]string{"cellar/a.go": "package cellar\nimport _ \"m/ground\"\n"},
			want:   []string{"cellar/a.go:2: cellar (layer 0) imports ground"},
		},
		"UnlistedImporter": {
			reason: "a new package must choose its layer, also when it imports nothing",
			files:  map[string]string{"attic/a.go": "package attic\n"},
			want:   []string{"attic: the package has no place"},
		},
		"UnlistedSubPackage": {
			reason: "a place does not spread to the folders below it",
			files:  map[string]string{"ground/internal/a.go": "package internal\n"},
			want:   []string{"ground/internal: the package has no place"},
		},
		"UnlistedRoot": {
			reason: "the root folder is a package like any other",
			files:  map[string]string{"a.go": "package m\n", "roof/a.go": "package roof\nimport _ \"m\"\n"},
			want:   []string{".: the package has no place", "roof/a.go:2: roof imports ., which has no place"},
		},
		"UnlistedImported": {
			reason: "a package without a place has no layer to compare with",
			files:  map[string]string{"roof/a.go": "package roof\nimport _ \"m/attic\"\n"},
			want:   []string{"roof/a.go:2: roof imports attic, which has no place"},
		},
		"FrameworkInProduct": {
			reason: "operators would link the test framework, sub-packages and major versions of it included",
			files: map[string]string{"roof/a.go": "package roof\nimport (\n\"testing\"\n\"testing/synctest\"\n" +
				"\"github.com/onsi/ginkgo/v2\"\n\"github.com/onsi/gomega/types\"\n" +
				"\"sigs.k8s.io/controller-runtime/pkg/envtest\"\n)\n"},
			want: []string{
				"roof/a.go:3: roof imports testing outside of tests",
				"roof/a.go:4: roof imports testing/synctest outside of tests",
				"roof/a.go:5: roof imports github.com/onsi/ginkgo/v2 outside of tests",
				"roof/a.go:6: roof imports github.com/onsi/gomega/types outside of tests",
				"roof/a.go:7: roof imports sigs.k8s.io/controller-runtime/pkg/envtest outside of tests",
			},
		},
		"KitInProduct": {
			reason: "a kit links test frameworks, so importing a kit is the same as importing these",
			files:  map[string]string{"roof/a.go": "package roof\nimport _ \"m/fake\"\n"},
			want:   []string{"roof/a.go:2: roof imports the test kit fake"},
		},
		"ForeignInPure": {
			reason: "a package of pure functions is kept from growing a client",
			files:  map[string]string{"ground/a.go": "package ground\nimport _ \"example.com/other\"\n"},
			want:   []string{"ground/a.go:2: ground imports example.com/other: the package is kept free of it"},
		},
		"ForeignWithSamePrefix": {
			reason: "an allowed path covers the packages below it, not other paths with the same prefix",
			files:  map[string]string{"ground/a.go": "package ground\nimport _ \"example.com/allowedtoo\"\n"},
			want:   []string{"ground/a.go:2: ground imports example.com/allowedtoo: the package is kept free of it"},
		},
		"TestUpwards": {
			reason: "tests that need an upper layer belong to that layer",
			files:  map[string]string{"middle/a_test.go": "package middle_test\nimport _ \"m/roof\"\n"},
			want:   []string{"middle/a_test.go:2: the tests of middle (layer 1) import roof"},
		},
		"TestWithForeignKit": {
			reason: "only the kit of one's own folder may stand higher",
			files:  map[string]string{"ground/a_test.go": "package ground_test\nimport _ \"m/middle/kit\"\n"},
			want:   []string{"ground/a_test.go:2: the tests of ground (layer 0) import middle/kit"},
		},
		"OtherPlatform": {
			reason: "a build tag must not hide a breach from the platform the test runs on",
			files:  map[string]string{"ground/a_plan9.go": "//go:build plan9\n\npackage ground\nimport _ \"m/roof\"\n"},
			want:   []string{"ground/a_plan9.go:4: ground (layer 0) imports roof"},
		},
		"ExampleOfExample": {
			reason: "each example is read alone",
			files:  map[string]string{"examples/one/main.go": "package main\nimport _ \"m/examples/two/api\"\n"},
			want:   []string{"examples/one/main.go:2: examples/one (layer 3) imports examples/two/api"},
		},
		"AsPlanned": {
			reason: "lower layers, the standard library, allowed modules, tests with neighbours and kits: all in order",
			files: map[string]string{
				"ground/a.go": "package ground\nimport (\n\"net/http\"\n\"example.com/allowed/sub\"\n)\n",
				"ground/a_test.go": "package ground_test\nimport " +
					"(\n\"testing\"\n\"m/ground\"\n\"m/cellar\"\n\"m/fake\"\n\"example.com/other\"\n)\n",
				"fake/a.go": "package fake\nimport \"testing\"\n",
				"middle/a.go": "package middle\nimport " +
					"(\n\"m/ground\"\n\"m/cellar\"\n\"example.com/other\"\n)\n",
				"middle/a_test.go":      "package middle_test\nimport \"m/middle/kit\"\n",
				"middle/kit/a.go":       "package kit\nimport (\n\"testing\"\n\"m/fake\"\n\"m/middle\"\n)\n",
				"roof/a.go":             "package roof\nimport \"m/middle\"\n",
				"examples/one/main.go":  "package main\nimport (\n\"m/roof\"\n\"m/examples/one/api\"\n)\n",
				"examples/one/api/a.go": "package api\n",
				"test/e2e/a_test.go": "package e2e\nimport " +
					"(\n\"github.com/onsi/gomega\"\n\"m/roof\"\n\"m/fake\"\n)\n",
				"test/e2e/inner/some.go": "package inner\nimport \"github.com/onsi/gomega\"\n",
			},
		},
		"NotOurs": {
			reason: "nested modules, test data and ignored folders do not belong to this module",
			files: map[string]string{
				"other/go.mod":           "module m/other\n",
				"other/deep/a.go":        "package deep\nimport _ \"m/roof\"\n",
				"ground/testdata/a.go":   "package broken (\n",
				"_attic/a.go":            "package attic\n",
				".cache/a.go":            "package cache\n",
				"ground/_a.go":           "package broken (\n",
				"ground/vendor/x/y.go":   "package y\n",
				"ground/notes/readme.md": "package?\n",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := layers.CheckImports(load(t, tc.files), samplePlan)
			if diff := cmp.Diff(tc.want, texts(got), prefixes()); diff != "" {
				t.Errorf("%s\nWalls(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHouseHasEveryPlaceOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, place := range layers.RepositoryPlan {
		if seen[place.Dir] {
			t.Errorf("%s stands twice in the plan: only the first would count", place.Dir)
		}
		seen[place.Dir] = true
	}
}

// load parses a tree of the given files, the root module being "m".
func load(t *testing.T, files map[string]string) *layers.Tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module m\n\ngo 1.26.0\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := layers.Load(fsys)
	if err != nil {
		t.Fatalf("loading the made-up tree: %v", err)
	}
	return tree
}
