package jsontext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

func TestMembersAndElements(t *testing.T) {
	tests := map[string]struct {
		reason, text    string
		members         []string
		wantWholeObject bool
		elements        []string
		wantWholeList   bool
	}{
		"Object": {
			"an object with values of all types and white space anywhere is whole",
			" { \"a\" : 1 ,\"b\":\"x\\\"}\",\n\"c\":{\"d\":[{}]},\t\"e\":[\"]\"],\"f\":null,\r\"g\\\"\":-1.5e3 } ",
			[]string{`a=1`, `b="x\"}"`, `c={"d":[{}]}`, `e=["]"]`, `f=null`, `g\"=-1.5e3`}, true, nil, false,
		},
		"Empty": {"an empty object is whole", `{ }`, nil, true, nil, false},
		"List": {
			"a list with values and white space is whole", ` [1,"x" , {"a":[2]},[ ]]`, nil, false,
			[]string{`1`, `"x"`, `{"a":[2]}`, `[ ]`}, true,
		},
		"EmptyList":  {"an empty list is whole", `[ ]`, nil, false, nil, true},
		"Nothing":    {"an empty text is neither an object nor a list", ``, nil, false, nil, false},
		"Space":      {"white space is neither an object nor a list", ` `, nil, false, nil, false},
		"Text":       {"a string is neither an object nor a list", `"a"`, nil, false, nil, false},
		"Open":       {"an object without an end is not whole", `{`, nil, false, nil, false},
		"OpenKey":    {"an object that ends within a key is not whole", `{"a`, nil, false, nil, false},
		"Escape":     {"an object that ends within an escape is not whole", `{"a\`, nil, false, nil, false},
		"KeyAlone":   {"an object that ends after a key is not whole", `{"a"`, nil, false, nil, false},
		"NoColon":    {"an object without a colon is not whole", `{"a" 1}`, nil, false, nil, false},
		"NoValue":    {"an object that ends after a colon is not whole", `{"a":`, nil, false, nil, false},
		"Missing":    {"an object without a value is not whole", `{"a":}`, nil, false, nil, false},
		"OpenText":   {"an object that ends within a string is not whole", `{"a":"x`, nil, false, nil, false},
		"OpenInside": {"an object that ends within another one is not whole", `{"a":{"b":1`, nil, false, nil, false},
		"TextInside": {"an object that ends within a nested string is not whole",
			`{"a":{"b":"c`, nil, false, nil, false},
		"Number": {"an object that ends after a number gives its first member",
			`{"a":12`, []string{`a=12`}, false, nil, false},
		"Second": {"an object that ends after a comma gives its first member",
			`{"a":12, `, []string{`a=12`}, false, nil, false},
		"NoComma":    {"a missing comma ends the members", `{"a":1 "b":2}`, []string{`a=1`}, false, nil, false},
		"EndComma":   {"a comma after the last member is an error", `{"a":1,}`, []string{`a=1`}, false, nil, false},
		"OtherKey":   {"a number as a key ends the members", `{"a":1,2:3}`, []string{`a=1`}, false, nil, false},
		"OpenList":   {"a list without an end is not whole", `[`, nil, false, nil, false},
		"OneElement": {"a list that ends after an element gives that element", `[1`, nil, false, []string{`1`}, false},
		"Comma": {"a list that ends after a comma gives its first element",
			`[1,`, nil, false, []string{`1`}, false},
		"NoCommaIn":  {"a missing comma ends the elements", `[1 2]`, nil, false, []string{`1`}, false},
		"EndCommaIn": {"a comma after the last element is an error", `[1,]`, nil, false, []string{`1`}, false},
		"NoElement":  {"a list without an element before a comma is not whole", `[,]`, nil, false, nil, false},
		"Broken": {"a list that ends within an element gives the elements before",
			`[1,{"a"`, nil, false, []string{`1`}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var members, elements []string
			whole := jsontext.EachMember([]byte(tc.text), func(m jsontext.RawMember) {
				members = append(members, string(m.Key)+"="+string(m.Value))
				if tc.text[m.Start] != '"' || tc.text[m.End-len(m.Value):m.End] != string(m.Value) {
					t.Errorf("%s: the range of %s is %d to %d", tc.reason, m.Key, m.Start, m.End)
				}
			})
			list := jsontext.EachElement([]byte(tc.text), func(m jsontext.RawMember) {
				elements = append(elements, string(m.Value))
				if tc.text[m.Start:m.End] != string(m.Value) {
					t.Errorf("%s: the range of %s is %d to %d", tc.reason, m.Value, m.Start, m.End)
				}
			})
			if d := cmp.Diff(tc.members, members); d != "" || whole != tc.wantWholeObject {
				t.Errorf("%s: whole is %v, -want, +got:\n%s", tc.reason, whole, d)
			}
			if d := cmp.Diff(tc.elements, elements); d != "" || list != tc.wantWholeList {
				t.Errorf("%s: a whole list is %v, -want, +got:\n%s", tc.reason, list, d)
			}
		})
	}
}

// TestLongStrings shows that the end of a long string is found, whatever it contains.
func TestLongStrings(t *testing.T) {
	for _, within := range []string{``, `\"`, `\\`, `\\\"`, `\"\"`, `\\\\`, `{\"}`, `\u0022`, `]`} {
		for before := range 80 {
			long := strings.Repeat("x", before) + within + strings.Repeat("y", 79-before)
			text := `{"` + long + `":"` + long + `","in":{"a":["` + long + `"]},"last":1}`
			var members []string
			whole := jsontext.EachMember([]byte(text), func(m jsontext.RawMember) {
				members = append(members, string(m.Key)+"="+string(m.Value))
			})
			want := []string{long + `="` + long + `"`, `in={"a":["` + long + `"]}`, `last=1`}
			if d := cmp.Diff(want, members); d != "" || !whole {
				t.Fatalf("%s after %d: whole is %v, -want, +got:\n%s", within, before, whole, d)
			}
			open := `{"a":"` + long
			for _, cut := range []string{open, open + `\`, open + `\"`, `{"a":{"` + long} {
				if jsontext.EachMember([]byte(cut),
					func(m jsontext.RawMember) { t.Errorf("%s has %s", cut, m.Value) }) {
					t.Errorf("%s counts as whole, but does not end", cut)
				}
			}
		}
	}
}
