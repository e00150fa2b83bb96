package layers_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

const unlistedMessage = " guards against panics, but is not a door of test/layers/panic_guards.go: leave that to the " +
	"door that enters users' code"

func TestGuards(t *testing.T) {
	const guard = "package p\n\nfunc (*T[K]) Call() { func() { _ = panics.Contain(nil) }() }\n"
	plan := layers.Plan{{Dir: "p"}, {Dir: "kit", IsTestKit: true}, {Dir: "internal/panics"}}
	door := layers.GuardedFunc{File: "p/p.go", Func: "T.Call", UserCode: "handlers", Test: "p.TestCall"}
	test := "package p_test\n\nfunc TestCall() { recover() }\n"
	cases := map[string]struct {
		reason  string
		files   map[string]string
		guarded []layers.GuardedFunc
		want    []string
	}{
		"Listed": {
			reason: "a door has a guard and a test",
			files:  map[string]string{"p/p.go": guard, "p/p_test.go": test}, guarded: []layers.GuardedFunc{door},
		},
		"Unlisted": {
			reason: "guards are at doors alone", files: map[string]string{"p/p.go": guard},
			want: []string{"p/p.go:3: T.Call" + unlistedMessage},
		},
		"Recover": {
			reason: "a recover outside of a listed door is a breach",
			files:  map[string]string{"p/p.go": "package p\n\nfunc f() { recover() }\n"},
			want:   []string{"p/p.go:3: f" + unlistedMessage},
		},
		"Unguarded": {
			reason:  "a door without a guard lets panics in",
			files:   map[string]string{"p/p.go": "package p\n", "p/p_test.go": test},
			guarded: []layers.GuardedFunc{door},
			want:    []string{"p/p.go: T.Call is a door of test/layers/panic_guards.go, but has no guard"},
		},
		"Untested": {
			reason: "each door has a test", files: map[string]string{"p/p.go": guard},
			guarded: []layers.GuardedFunc{door},
			want:    []string{"p/p.go: the test p.TestCall of the door T.Call does not exist"},
		},
		"Others": {
			reason: "the mechanism itself, kits, and the other functions of package panics are free",
			files: map[string]string{
				"internal/panics/a.go": "package panics\n\nfunc f() { recover() }\n",
				"kit/a.go":             "package kit\n\nfunc f() { recover() }\n",
				"p/p.go":               "package p\n\nfunc f() { panics.Stack(nil) }\n",
			},
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
			for _, breach := range layers.CheckPanicGuards(tree, plan, tc.guarded) {
				got = append(got, breach.String())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
