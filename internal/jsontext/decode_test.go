package jsontext_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/test/benchmarks/objects"
)

// all are texts with all parts of the syntax.
var all = slices.Concat(values, numbers, stringTexts, malformedTexts)

var (
	values = []string{
		`{}`, `[]`, `""`, `0`, `true`, `false`, `null`, ` { "a" : [ 1 , 2 ] , "b" : null } ` + "\r\n\t",
		`[[],{},[{}]]`, `{"a":{"b":{"c":["d",true,false,null]}}}`, `{"a":1,"a":2}`, `{"":0}`, `[1,"1",1.0]`,
		strings.Repeat("[", 99) + strings.Repeat("]", 99), strings.Repeat("[", 101) + strings.Repeat("]", 101),
		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300), `{"` + strings.Repeat("long", 20) + `":1}`,
	}
	numbers = []string{
		`[0,-0,-1,9007199254740993,9223372036854775807,-9223372036854775808,999999999999999999,1000000000000000000]`,
		`[9223372036854775808,123456789012345678901]`, `[1.5,1e3,1E-2,-0.0,0.1e+1]`, `[1e999]`, `[01]`, `[-]`, `[1.]`,
		`[.5]`, `[1e]`, `[+1]`, `[1_0]`, `[--1]`, `[-01]`, `[1-1]`, `1 2`, `1.5`, `-`, `NaN`,
	}
	stringTexts = []string{
		`"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e4\u20ac\u0000\uFFFF"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`,
		`"\u12"`, `"\u12g4"`, `"\u"`, `"\x"`, `"\`, `"\\`, `"\\\"`, `"\\\\"`, `{"\n":"\\n"}`, `{"a\u0041":1}`,
		`{"\x":1}`, `"ä€😀"`, `"a long text with ä in it"`, `"a"b`, `'a'`, "\"\xff\"", "\"a long text with \xc3\"",
		"\"\x7f\"", "\"\x01\"", "\"a longer text with \x1f in it\"", "\"a longer text with ä and \x1f in it\"",
		"\"\n\"", "{\"\x01\":1}",
	}
	malformedTexts = []string{
		`{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a" 1}`, `{1:1}`, `{"a":}`,
		`{"a":1 "b":2}`, `{"a":1]`, `[`, `[1`, `[1,`, `[1,]`, `[,]`, `[1 2]`, `[1}`, `]`, `}`, `{]`, `[}`, `tru`, `nul`,
		`truex`, `nulls`, `fals`, `True`, ``, ` `, `{"a":1}}`, `{} {}`, "\ufeff{}",
	}
)

// requireSameAsKubernetes compares the result with that of the decoder of sigs.k8s.io/json.
func requireSameAsKubernetes(t *testing.T, text string) {
	t.Helper()
	var want any
	failed := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
	wanted := fmt.Sprint(failed)
	got, err := jsontext.Decode([]byte(text))
	if !reflect.DeepEqual(want, got) || fmt.Sprint(err) != wanted {
		t.Errorf("%q is %#v, %v, want %#v, %v", text, got, err, want, failed)
	}
	if got, err := jsontext.DecodeString(text); !reflect.DeepEqual(want, got) || fmt.Sprint(err) != wanted {
		t.Errorf("the string %q is %#v, %v, want %#v, %v", text, got, err, want, failed)
	}
	var object map[string]any
	failed = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object)
	found, err := jsontext.DecodeObject([]byte(text))
	if !reflect.DeepEqual(object, found) || fmt.Sprint(err) != fmt.Sprint(failed) {
		t.Errorf("%q is the object %#v, %v, want %#v, %v", text, found, err, object, failed)
	}
}

func TestDecoding(t *testing.T) {
	for _, text := range all {
		requireSameAsKubernetes(t, text)
	}
	for _, o := range objects.All {
		requireSameAsKubernetes(t, string(o.Text))
		for at := range o.Text {
			requireSameAsKubernetes(t, string(o.Text[:at]))
		}
	}
}

func FuzzDecoding(f *testing.F) {
	for _, text := range all {
		f.Add(text)
	}
	for _, o := range objects.All {
		f.Add(string(o.Text))
	}
	f.Fuzz(requireSameAsKubernetes)
}

// TestValuesShareNothing shows that a caller may change a value or its text without an effect on other values.
func TestValuesShareNothing(t *testing.T) {
	text := []byte(`{"name":{"name":["name"]},"other":"a\"b"}`)
	first, err := jsontext.DecodeObject(text)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := jsontext.DecodeObject(text)
	clear(text)
	second["name"].(map[string]any)["more"] = 1
	want := map[string]any{"name": map[string]any{"name": []any{"name"}}, "other": `a"b`}
	if d := cmp.Diff(want, first); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestPlainTextsAllocateLess shows that plain texts, which nearly all objects have, take fewer allocations than with
// the other decoder.
func TestPlainTextsAllocateLess(t *testing.T) {
	for _, o := range objects.All {
		plain := testing.AllocsPerRun(100, func() { _, _ = jsontext.DecodeObject(o.Text) })
		other := testing.AllocsPerRun(100, func() {
			var object map[string]any
			_ = kjson.UnmarshalCaseSensitivePreserveInts(o.Text, &object)
		})
		if plain > 0.8*other {
			t.Errorf("%s: %v allocations, and %v by the decoder of sigs.k8s.io/json", o.Name, plain, other)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, o := range objects.All {
		b.Run(o.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsontext.DecodeObject(o.Text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
