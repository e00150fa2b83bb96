package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeModule puts files into a module of its own, in a temporary folder.
func writeModule(t *testing.T, files map[string]string) module {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.25\n"
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatalf("making the folder of %s: %v", name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatalf("writing %s: %v", name, err)
		}
	}
	return module{root: root}
}

func TestSearch(t *testing.T) {
	const condition = "package p\n\nfunc f(a, b bool, i, k int, s string, r []int) bool {\n"
	cases := map[string]struct {
		reason string
		code   string
		want   []string
	}{
		"comparison": {
			reason: "the opposite, and what differs for equal sides alone",
			code:   condition + "return i < k }",
			want:   []string{"`i < k` to `i >= k`", "`i < k` to `i <= k`"},
		},
		"equality": {
			reason: "an equality has no boundary to change",
			code:   condition + "return s == \"\" }", want: []string{"`s == \"\"` to `s != \"\"`"},
		},
		"connection": {
			reason: "the sides of a conjunction are changed too",
			code:   condition + "return a && b }", want: []string{"`a && b` to `a || b`", "`a` to `!a`", "`b` to `!b`"},
		},
		"negation": {
			reason: "a negation is only removed",
			code:   condition + "return !a }", want: []string{"`!a` to `a`"},
		},
		"condition": {
			reason: "a condition in parentheses is changed",
			code:   condition + "if (a) { return b }; return b }", want: []string{"`a` to `!a`"},
		},
		"case": {
			reason: "a case without a switch value is changed like a condition",
			code:   condition + "switch { case a: return b }; return b }", want: []string{"`a` to `!a`"},
		},
		"literal": {
			reason: "only where it is returned, and only the built-in one",
			code:   condition + "a = false; if i := true; i { return i }; return false }",
			want:   []string{"`i` to `!i`", "`return false` to `return !false`"},
		},
		"beside an error": {
			reason: "a bool beside a non-nil error is not changed",
			code: "package p\n\nfunc f(err error) (bool, error) " +
				"{ if nil == err { return true, nil }; return false, err }",
			want: []string{"`nil == err` to `nil != err`", "`return true` to `return !true`"},
		},
		"numbers": {
			reason: "not the plus of strings",
			code:   condition + "_ = s + s; _ = i*k + -i; return a }",
			want:   []string{"`i*k + -i` to `i*k - -i`", "`i*k` to `i / k`", "`-i` to `+i`"},
		},
		"constants": {
			reason: "there is no switch in what the compiler computes, but in a function's numbers",
			code: "package p\n\nimport \"time\"\n\nconst c = 2 * 3\n\nvar a [1 + 1]int\n\n" +
				"func f() any { return 2*time.Second }",
			want: []string{"`2*time.Second` to `2 / time.Second`"},
		},
		"statements": {
			reason: "a loop that does not come on never ends, and a string has no minus",
			code:   condition + "for ; i > 0; i-- { k++; k += i; s += s }; return a }",
			want: []string{
				"`i > 0` to `i <= 0`", "`i > 0` to `i >= 0`", "`k++` to `k--`", "`k += i` to `k -= i`",
			},
		},
		"branches": {
			reason: "those of a switch, and of a loop without an end, mean something else",
			code: condition + "for range r { if a { continue } }; for { if b { break } }; " +
				"for range r { switch { default: break } }; return a }",
			want: []string{"`a` to `!a`", "`continue` to `break`", "`b` to `!b`"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			target := loadCode(t, c.code)
			var got []string
			for _, one := range target.mutants {
				got = append(got, strings.TrimPrefix(one.change(), "f: "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestFunctionsAreNamed(t *testing.T) {
	target := loadCode(t, `package p

type one[K any] struct{}

type other struct{}

func (one[K]) f() bool { return true }

func (*other) g() bool { return true }

var _ = func() bool { return true }
`)
	var got []string
	for _, one := range target.mutants {
		got = append(got, one.function)
	}
	if diff := cmp.Diff([]string{"one.f", "other.g", ""}, got); diff != "" {
		t.Errorf("names that tell one function from another (-want, +got):\n%s", diff)
	}
}

func loadCode(t *testing.T, code string) *target {
	t.Helper()
	m := writeModule(t, map[string]string{"p.go": code})
	packages, err := m.packages(t.Context(), []string{"."})
	if err != nil {
		t.Fatalf("listing the package: %v", err)
	}
	loaded, err := m.load(t.Context(), packages[0], 1)
	if err != nil {
		t.Fatalf("loading the package: %v", err)
	}
	return loaded
}
