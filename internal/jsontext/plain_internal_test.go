package jsontext

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	kjson "sigs.k8s.io/json"
)

// TestPlain shows that texts in the usual form do not need the slower decoder, which no other test would notice.
func TestPlain(t *testing.T) {
	long := strings.Repeat("twenty-five characters ä ", 3)
	for _, text := range []string{
		`{}`, `[]`, `""`, `0`, `true`, `false`, `null`, ` { "a" : [ 1 , "b" ] , "c" : null } `, "\t{\n\"a\":\r1}",
		"[\n\n1,\t\t2,\r\r3,  4]", `[[],{},[{}],{"a":[]}]`, `[true,false,null]`, `{"a":true}`,
		`[0,-1,7,19,80,99,-99,10,100,123456789012345678,-123456789012345678]`,
		`[0.5,1.5,-2.25,1e3,1E+3,1e-3,9223372036854775807,18446744073709551616]`,
		`"\"\\\/\b\f\n\r\t\u0041\u00e4"`, `"a\u0041"`, `{"a\"b\\":"\u0041"}`, `"ä"`, `"` + long + `"`, `"eight..."`,
		"\"\x7f and eight more\"", `"~~~~~~~~"`, `"        "`, `"        ä"`, `" "`,
		strings.Repeat("[", maxPlainDepth) + strings.Repeat("]", maxPlainDepth),
		strings.Repeat("[[],", maxPlainDepth-1) + "1" + strings.Repeat("]", maxPlainDepth-1),
	} {
		value, plain := decodePlain([]byte(text))
		var want any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if !plain || !reflect.DeepEqual(want, value) {
			t.Errorf("%s is %#v, plain: %v, want %#v", text, value, plain, want)
		}
	}
	for reason, text := range map[string]string{
		"nesting beyond the limit": strings.Repeat("[", maxPlainDepth+1) + strings.Repeat("]",
			maxPlainDepth+1),
		"a surrogate pair":                           `"\ud83d\ude00"`,
		"invalid UTF-8":                              "\"\xff\"",
		"invalid UTF-8 at the end":                   "\"eight...\x80\"",
		"a control character":                        "\"\x1f\"",
		"a control character within the first eight": "\"AB\x1fDEFGHIJK\"",
		"a control character after eight":            "\"eight...ä\x1f\"",
		"a number beyond float64":                    `1e999`,
		"an incomplete escape":                       `"\u00`,
		"an empty text":                              ``,
		"two values":                                 `1 2`,
		"an incomplete word":                         `tru`,
		"an unknown word":                            `trua`,
		"a string without an end":                    `"eight...and more`,
		"a list without an end":                      `[1`,
		"an escape without an end":                   `"\`,
	} {
		if value, plain := decodePlain([]byte(text)); plain {
			t.Errorf("%s must not count as plain: %s is %#v", reason, text, value)
		}
	}
}

// TestIntegersAllocateNothingButTheirValue shows that decoding an integer allocates its value only. Most numbers in
// objects are integers.
func TestIntegersAllocateNothingButTheirValue(t *testing.T) {
	d := &decoder{}
	for _, written := range []string{`300`, `-300`, `999999999999999999`, `-100000000000000000`, `1900 `} {
		text := []byte(written)
		if made := testing.AllocsPerRun(100, func() { _, _ = d.decodeValue(text, 0) }); made > 1 {
			t.Errorf("%s: %v allocations", text, made)
		}
	}
}

// TestDecodersForget shows that a decoder, which is reused, does not keep keys or values of an earlier text.
func TestDecodersForget(t *testing.T) {
	d := &decoder{}
	whole := `{"a":["b",{"c":1}],"d":"e"}`
	for _, text := range []string{whole, whole[:len(whole)-2], `[[[["a"`, `{"a":{"b":{`} {
		d.decodeValue([]byte(text), 0)
		d.returnToPool()
		if len(d.keys) > 0 || len(d.values) > 0 || d.depth != 0 {
			t.Errorf("%s: %v, %v and %d are left", text, d.keys, d.values, d.depth)
		}
		for i, value := range d.values[:cap(d.values)] {
			if value != nil || i < cap(d.keys) && d.keys[:cap(d.keys)][i] != "" {
				t.Errorf("%s: %v is kept, or a key", text, value)
			}
		}
	}
}

func TestNames(t *testing.T) {
	var known keyCache
	at := func(name string) *byte { return unsafe.StringData(known.internKey([]byte(name))) }
	for name, shared := range map[string]bool{
		"a": true, "metadata": true, strings.Repeat("a", maxCachedKeyLength): true,
		strings.Repeat("a", maxCachedKeyLength+1): false,
	} {
		first, second := at(name), at(name)
		if known.internKey([]byte(name)) != name || (first == second) != shared {
			t.Errorf("%s: two strings of the name share memory: want %v", name, shared)
		}
	}
	if known.internKey(nil) != "" {
		t.Error("the empty name must stay empty")
	}
	fields := strings.Fields("apiVersion kind metadata name namespace labels annotations spec status uid finalizers " +
		"resourceVersion generation creationTimestamp containers image env value ports volumeMounts mountPath data")
	apart := map[*byte]bool{}
	for _, name := range fields {
		at(name)
	}
	for _, name := range fields {
		apart[at(name)] = true
	}
	kept := 0
	for _, name := range known {
		if name != "" {
			kept++
		}
	}
	if kept < len(fields)-3 {
		t.Errorf("of %d names, only %d are kept: the others collide", len(fields), kept)
	}
	for range fields {
		for _, name := range fields {
			if known.internKey([]byte(name)) != name {
				t.Errorf("%s becomes another name", name)
			}
		}
	}
}
