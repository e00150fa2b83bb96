package layers_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestPromises(t *testing.T) {
	const public = "// Package p is public.\npackage p\n"
	const own = "// Not part of the public API.\n//\n// Package q.\npackage q\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Both": {
			reason: "promised packages say nothing, all others say that they are not public",
			files:  map[string]string{"p/doc.go": public, "q/doc.go": own},
		},
		"Wrong": {
			reason: "each comment contradicts the list",
			files: map[string]string{
				"p/doc.go": "// Not part of the public API.\npackage p\n", "q/doc.go": "// Package q.\npackage q\n",
			},
			want: []string{
				"p/doc.go: the package is promised, and its comment says that it is not public",
				"q/doc.go: begin the package comment with: Not part of the public API.",
			},
		},
		"Imports": {
			reason: "only tests may import packages of test/",
			files: map[string]string{
				"q/doc.go": own, "q/a.go": "package q\n\nimport _ \"m/test/growth\"\n",
				"q/a_test.go":      "package q\n\nimport _ \"m/test/growth\"\n",
				"test/growth/a.go": "package growth\n\nimport _ \"m/test/other\"\n",
			},
			want: []string{"q/a.go: it imports test/growth: only tests may import packages of test/"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"go.mod": {Data: []byte("module m\n")}}
			for path, text := range tc.files {
				files[path] = &fstest.MapFile{Data: []byte(text)}
			}
			tree, err := layers.Load(files)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, breach := range layers.Promises(tree, []string{"p"}) {
				got = append(got, breach.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}

func TestReplacements(t *testing.T) {
	got, err := layers.Replacements(fstest.MapFS{
		"p/go.mod": {Data: []byte("module m/p\n\nreplace m => ..\n")},
		"q/go.mod": {Data: []byte("module m/q\n\nrequire m v0.0.0\n")},
		"r/go.mod": {Data: []byte("module m/r\n\nreplace m => ..\n")},
	}, []string{"p", "q", "without"})
	if err != nil {
		t.Fatal(err)
	}
	want := []layers.Breach{{Location: "p/go.mod", Message: "a released module has a replace: use its go.work instead"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}
