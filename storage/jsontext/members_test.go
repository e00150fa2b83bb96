package jsontext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

func TestMembersAndElements(t *testing.T) {
	tests := map[string]struct {
		reason, text string
		members      []string
		whole        bool
		elements     []string
		list         bool
	}{
		"Object": {
			"values of all types, with spaces anywhere",
			" { \"a\" : 1 ,\"b\":\"x\\\"}\",\n\"c\":{\"d\":[{}]},\t\"e\":[\"]\"],\"f\":null,\r\"g\\\"\":-1.5e3 } ",
			[]string{`a=1`, `b="x\"}"`, `c={"d":[{}]}`, `e=["]"]`, `f=null`, `g\"=-1.5e3`}, true, nil, false,
		},
		"Empty": {"there may be none", `{ }`, nil, true, nil, false},
		"List": {
			"the same of a list", ` [1,"x" , {"a":[2]},[ ]]`, nil, false,
			[]string{`1`, `"x"`, `{"a":[2]}`, `[ ]`}, true,
		},
		"EmptyList":  {"there may be none", `[ ]`, nil, false, nil, true},
		"Nothing":    {"it is none of both", ``, nil, false, nil, false},
		"Space":      {"it is none of both", ` `, nil, false, nil, false},
		"Text":       {"it is none of both", `"a"`, nil, false, nil, false},
		"Open":       {"it does not end", `{`, nil, false, nil, false},
		"OpenKey":    {"it ends within a key", `{"a`, nil, false, nil, false},
		"Escape":     {"it ends within an escape", `{"a\`, nil, false, nil, false},
		"KeyAlone":   {"it ends after a key", `{"a"`, nil, false, nil, false},
		"NoColon":    {"there is none", `{"a" 1}`, nil, false, nil, false},
		"NoValue":    {"it ends after the colon", `{"a":`, nil, false, nil, false},
		"Missing":    {"there is no value", `{"a":}`, nil, false, nil, false},
		"OpenText":   {"it ends within a text", `{"a":"x`, nil, false, nil, false},
		"OpenInside": {"it ends within an object", `{"a":{"b":1`, nil, false, nil, false},
		"TextInside": {"it ends within a text of an object", `{"a":{"b":"c`, nil, false, nil, false},
		"Number":     {"it ends after a number", `{"a":12`, []string{`a=12`}, false, nil, false},
		"Second":     {"it ends after a comma", `{"a":12, `, []string{`a=12`}, false, nil, false},
		"OtherKey":   {"a key is no number", `{"a":1,2:3}`, []string{`a=1`}, false, nil, false},
		"OpenList":   {"it does not end", `[`, nil, false, nil, false},
		"OneElement": {"it ends after one", `[1`, nil, false, []string{`1`}, false},
		"Comma":      {"it ends after a comma", `[1,`, nil, false, []string{`1`}, false},
		"NoElement":  {"there is none", `[,]`, nil, false, nil, false},
		"Broken":     {"it ends within one", `[1,{"a"`, nil, false, []string{`1`}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var members, elements []string
			whole := jsontext.Members([]byte(tc.text), func(m jsontext.Member) {
				members = append(members, string(m.Key)+"="+string(m.Value))
				if tc.text[m.At] != '"' || tc.text[m.End-len(m.Value):m.End] != string(m.Value) {
					t.Errorf("%s: %s is said to be from %d to %d", tc.reason, m.Key, m.At, m.End)
				}
			})
			list := jsontext.Elements([]byte(tc.text), func(m jsontext.Member) {
				elements = append(elements, string(m.Value))
				if tc.text[m.At:m.End] != string(m.Value) {
					t.Errorf("%s: %s is said to be from %d to %d", tc.reason, m.Value, m.At, m.End)
				}
			})
			if d := cmp.Diff(tc.members, members); d != "" || whole != tc.whole {
				t.Errorf("%s: whole is %v, -want, +got:\n%s", tc.reason, whole, d)
			}
			if d := cmp.Diff(tc.elements, elements); d != "" || list != tc.list {
				t.Errorf("%s: a whole list is %v, -want, +got:\n%s", tc.reason, list, d)
			}
		})
	}
}

// Long strings are searched for their ends: whatever stands anywhere in them, they end where they do.
func TestLongStrings(t *testing.T) {
	for _, within := range []string{``, `\"`, `\\`, `\\\"`, `\"\"`, `\\\\`, `{\"}`, `\u0022`, `]`} {
		for before := range 80 {
			long := strings.Repeat("x", before) + within + strings.Repeat("y", 79-before)
			text := `{"` + long + `":"` + long + `","in":{"a":["` + long + `"]},"last":1}`
			var members []string
			whole := jsontext.Members([]byte(text), func(m jsontext.Member) {
				members = append(members, string(m.Key)+"="+string(m.Value))
			})
			want := []string{long + `="` + long + `"`, `in={"a":["` + long + `"]}`, `last=1`}
			if d := cmp.Diff(want, members); d != "" || !whole {
				t.Fatalf("%s after %d: whole is %v, -want, +got:\n%s", within, before, whole, d)
			}
			open := `{"a":"` + long
			for _, cut := range []string{open, open + `\`, open + `\"`, `{"a":{"` + long} {
				if jsontext.Members([]byte(cut), func(m jsontext.Member) { t.Errorf("%s has %s", cut, m.Value) }) {
					t.Errorf("%s does not end", cut)
				}
			}
		}
	}
}
