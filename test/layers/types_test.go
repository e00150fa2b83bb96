package layers_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestForeignTypes(t *testing.T) {
	cases := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"Alias": {
			reason: "an alias only renames the internal type",
			source: "type A = inner.T",
			want:   []string{"p/a.go:5: the public API mentions T of inner, which is not promised"},
		},
		"Signatures": {
			reason: "parameters, results and constraints of functions and methods are part of the API",
			source: "func F(one inner.A) (two []inner.B)\nfunc G[V inner.C]()\n" +
				"type T struct{}\nfunc (T) M(three func(inner.D))",
			want: []string{
				"p/a.go:5: the public API mentions A of inner, which is not promised",
				"p/a.go:5: the public API mentions B of inner, which is not promised",
				"p/a.go:6: the public API mentions C of inner, which is not promised",
				"p/a.go:8: the public API mentions D of inner, which is not promised",
			},
		},
		"Fields": {
			reason: "exported and embedded fields are part of the API, unexported ones are not",
			source: "type T struct {\nA inner.A\nb inner.B\ninner.C\n}",
			want: []string{
				"p/a.go:6: the public API mentions A of inner, which is not promised",
				"p/a.go:8: the public API mentions C of inner, which is not promised",
			},
		},
		"Unexported": {
			reason: "an unexported type counts if an exported declaration mentions it; its unexported methods do not",
			source: "type seen interface{ M(inner.A); m(inner.B) }\nfunc F(seen)\ntype unseen struct{ A inner.C }",
			want:   []string{"p/a.go:5: the public API mentions A of inner, which is not promised"},
		},
		"Allowed": {
			reason: "types of promised packages and other modules are allowed; bodies do not count",
			source: "var V = inner.V\nvar w inner.W\nfunc F(q.T, time.Time) { var _ inner.A }\nfunc f(inner.B)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := layers.ForeignTypes(fstest.MapFS{
				"go.mod": {Data: []byte("module m\n")},
				"q/q.go": {Data: []byte("package q\n\ntype T int\n")},
				"p/a.go": {Data: []byte(
					"package p\n\nimport (\"time\"; \"m/inner\"; \"m/q\")\n\n" + tc.source + "\n",
				)},
			}, []string{"p", "q"})
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, breach := range got {
				texts = append(texts, breach.String())
			}
			if d := cmp.Diff(tc.want, texts); d != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, d)
			}
		})
	}
}
