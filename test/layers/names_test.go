package layers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/layers"
)

func TestExports(t *testing.T) {
	const enough = "package ground\n\ntype (\n\tT[V any] struct{}\n\tunexported int\n)\n\n" +
		"func (T[V]) Method() {}\nfunc F() {}\nfunc f() {}\n\nconst (\n\tA unexported = iota\n\tB\n)\n\n" +
		"type Kind int\n\nconst (\n\tOne Kind = iota\n\tTwo\n)\n\nvar (\n\tx = 1\n\tV, W = 1, 2\n)\n\nconst C = 1\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"TooMany": {
			reason: "all files of the package count together, and a place's own figure takes precedence",
			files: map[string]string{
				"ground/a.go": functions(20), "ground/b.go": strings.ReplaceAll(functions(6), "F", "G"),
				"roof/a.go": functions(3),
			},
			want: []string{"ground: the package exports 26 names: 25", "roof: the package exports 3 names: 2"},
		},
		"Groups": {
			reason: "a type, a function, a group of constants or variables and a single one count once, methods and " +
				"constants of a type not at all",
			files: map[string]string{"ground/a.go": enough, "ground/b.go": functions(20)},
			want:  []string{"ground: the package exports 26 names: 25"},
		},
		"Exempt": {
			reason: "tests, kits, commands, other modules and what the walls report have no figure",
			files: map[string]string{
				"ground/a_test.go": functions(30), "fake/a.go": functions(30), "other/go.mod": "module m/other\n",
				"other/a.go": functions(30), "attic/a.go": functions(30), "ground/b.go": functions(25),
				"examples/one/main.go": strings.Replace(functions(30), "ground", "main", 1), "roof/a.go": functions(2),
			},
		},
	}
	plan := append(layers.Plan{{Dir: "roof", Layer: 2, Exports: 2}}, samplePlan...)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(layers.CheckExportCounts(load(t, tc.files), plan)),
				prefixes()); diff != "" {
				t.Errorf("%s\nCrowds(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// functions is a file that exports as many.
func functions(n int) string {
	text := "package ground\n"
	for i := range n {
		text += "func F" + strings.Repeat("x", i) + "() {}\n"
	}
	return text
}

func TestLeaks(t *testing.T) {
	const secret = "package ground\n\ntype Family int\n\nconst (\n\tRed Family = iota\n\tBlue\n\tNumber = 3\n)\n" +
		"const Green Family = 7\nconst Other = 1\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Constants": {
			reason: "whatever the package is called where it is imported, and wherever in a group they stand",
			files: map[string]string{
				"roof/a.go": "package roof\nimport \"m/ground\"\nvar a = ground.Red\n" +
					"func f() bool { return ground.Blue > 0 }\n",
				"roof/b.go": "package roof\nimport g \"m/ground\"\nvar b = g.Green\n",
			},
			want: []string{"roof/a.go:3: Red is", "roof/a.go:4: Blue is", "roof/b.go:3: Green is"},
		},
		"TypeAndFields": {
			reason: "a comparison of fields, one that is set, or another type of it decides by it as well",
			files: map[string]string{
				"roof/a.go": "package roof\nimport \"m/ground\"\nvar x, y T\nvar a = x.Family == y.z.Family\n" +
					"var b = T{\n\tFamily: 1,\n}\ntype Alias = ground.Family\n",
			},
			want: []string{
				"roof/a.go:4: Family is", "roof/a.go:4: Family is", "roof/a.go:6: Family is", "roof/a.go:8: Family is",
			},
		},
		"StaleList": {
			reason: "a file that was mended must not begin again",
			files:  map[string]string{"middle/former.go": "package middle\n"},
			want:   []string{"middle/former.go: the file names no Family any more"},
		},
		"Allowed": {
			reason: "those who are listed, tests, kits, other names and the same ones of other packages",
			files: map[string]string{
				"cellar/a.go":     "package cellar\nvar a = x.Family\n",
				"middle/known.go": "package middle\nimport \"m/ground\"\nvar a = ground.Red\n",
				"roof/a_test.go":  "package roof\nimport \"m/ground\"\nvar a = ground.Red\n",
				"fake/a.go":       "package fake\nimport \"m/ground\"\nvar a = ground.Red\n",
				"roof/b.go": "package roof\nimport (\n\"m/ground\"\n\"x.io/colours\"\n)\n" +
					"var a = ground.Other + colours.Red\n",
				"middle/former.go":  "package middle\nvar a = x.Family\n",
				"roof/untouched.go": "package roof\nvar a, Red = x.Red, map[string]int{\"Family\": 1}\n",
				"roof/number.go":    "package roof\nimport \"m/ground\"\nvar c = ground.Number\n",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.files["ground/a.go"] = secret
			rule := layers.RestrictedType{
				Dir: "ground", Type: "Family", AllowedPaths: []string{"ground", "cellar", "middle/known.go"},
			}
			if tc.files["middle/former.go"] != "" {
				rule.ExemptFiles = []string{"middle/former.go"}
			}
			got := layers.CheckRestrictedTypes(load(t, tc.files), samplePlan, rule)
			if diff := cmp.Diff(tc.want, texts(got), prefixes()); diff != "" {
				t.Errorf("%s\nLeaks(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
