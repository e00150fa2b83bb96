package keys_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/keys"
)

// requireErrorText compares an error with a part of its expected text; an empty text means no error.
func requireErrorText(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: unexpected error: %v", reason, err)
	case want != "" && err == nil:
		t.Errorf("%s: no error, want one about %q", reason, want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("%s: the error does not mention %q: %v", reason, want, err)
	}
}

func TestValidateID(t *testing.T) {
	tests := map[string]struct {
		reason string
		id     string
		want   string
	}{
		"Empty":         {reason: "an empty id is an error", id: "", want: "it is empty"},
		"Slash":         {reason: "an id that begins with a slash is an error", id: "/fn", want: `its part ""`},
		"TrailingSlash": {reason: "an id that ends with a slash is an error", id: "fn/", want: `its part ""`},
		"DoubleSlash":   {reason: "an id with two slashes in a row is an error", id: "a//b", want: `its part ""`},
		"Parent": {reason: "a part of two dots is an error, as routers resolve it",
			id: "a/../b", want: `its part ".."`},
		"Self": {reason: "a part of one dot is an error, as routers resolve it",
			id: "a/./b", want: `its part "."`},
		"BrokenUTF8": {reason: "invalid UTF-8 is an error, as JSON cannot hold it", id: "a\xff", want: "UTF-8"},
		"Control": {
			reason: "a control character is an error, even behind the cut",
			id:     strings.Repeat("x", 64) + "\n", want: "control",
		},
		"Lambda": {reason: "a colon is an error", id: "lambda:/srv/app.py:12", want: "cannot be an annotation"},
		"Space":  {reason: "a space is an error", id: "my fn", want: "cannot be an annotation"},
		"Letter": {reason: "a character outside of ASCII is an error", id: "über", want: "an annotation"},
		"Underscored": {
			reason: "an underscore at the beginning is an error", id: "_private", want: "begins and ends",
		},
		"EndsWithSign": {
			reason: "an id whose key ends with an underscore is an error", id: "Class.<lambda>",
			want: "begins and ends",
		},
		"DiffBase": {
			reason: "the id of the last-handled configuration is reserved", id: "last-handled-configuration",
			want: "framework's own",
		},
		"Apart": {
			reason: "an id like a bound annotation is reserved", id: "handled-uid-ofSecret", want: "framework's own",
		},
		"Marker": {reason: "the id of the marker is reserved", id: "kopf-managed", want: "framework's own"},
		"Touch":  {reason: "the id of the touch annotation is reserved", id: "touch-dummy", want: "framework's own"},
		"Children": {
			reason: "an id like a record of children is reserved", id: "children-of.fn", want: "framework's own",
		},
		"DeclaredIn": {
			reason: "the id of the annotation that names a child's record is reserved", id: "declared-in",
			want: "framework's own",
		},
		"RunChildren": {reason: "an id like a record of runs of children is reserved",
			id: "children-of-run.fn", want: "framework's own"},
		"LastDigit": {reason: "a digit at the end is valid", id: "step-9"},
		"Remedy":    {reason: "the error suggests a valid id", id: "a b", want: "choose an id of letters"},
		"Simple":    {reason: "a usual id is valid", id: "create_fn"},
		"Field":     {reason: "the id of a field handler is valid", id: "fn/spec.field"},
		"Nested":    {reason: "the id of a local Python function is valid", id: "outer.<locals>.fn"},
		"Long": {reason: "a long id is valid, as its key is shortened",
			id: strings.Repeat("handler/", 30) + "fn"},
		"LongTail": {reason: "an underscore behind the cut is valid", id: strings.Repeat("x", 64) + "_"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requireErrorText(t, tc.reason, keys.ValidateID(tc.id), tc.want)
		})
	}
}

func TestValidatePrefix(t *testing.T) {
	tests := map[string]struct {
		reason string
		prefix string
		want   string
	}{
		"Empty": {reason: "an empty prefix is an error", prefix: "", want: "use a domain name"},
		"Slash": {reason: "a slash is an error", prefix: "a.org/x", want: "in lower case"},
		"UpperCase": {reason: "an upper-case letter is an error, as for finalizers",
			prefix: "Example.org", want: "in lower case"},
		"Underscore": {reason: "an underscore is an error", prefix: "my_op.org", want: "in lower case"},
		"Letters":    {reason: "a letter outside of ASCII is an error", prefix: "bücher.org", want: "in lower case"},
		"EmptyPart":  {reason: "an empty part is an error", prefix: "a..org", want: "use a domain name"},
		"Dash":       {reason: "a part that ends with a dash is an error", prefix: "a-.org", want: "use a domain name"},
		"LongOne": {reason: "a prefix longer than a domain is an error",
			prefix: strings.Repeat("a", 254), want: "at most 253"},
		"Longest": {reason: "a prefix as long as a domain is valid", prefix: strings.Repeat("a", 253)},
		"Kopf":    {reason: "the prefix of Kopf is valid", prefix: keys.KopfPrefix},
		"OneWord": {reason: "a prefix without dots is valid", prefix: "my-operator2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requireErrorText(t, tc.reason, keys.ValidatePrefix(tc.prefix), tc.want)
		})
	}
}

func TestValidateKey(t *testing.T) {
	long := strings.Repeat("a", 56)
	tests := map[string]struct {
		reason string
		key    string
		want   string
	}{
		"NoPrefix":   {reason: "a key without a prefix is an error", key: "fn", want: "no prefix"},
		"NoName":     {reason: "a key without a name is an error", key: "a.org/", want: "and a name"},
		"TwoSlashes": {reason: "a slash in the name is an error", key: "a.org/b/c", want: "a slash, and"},
		"BadPrefix":  {reason: "an invalid prefix is an error", key: "-/fn", want: "use a domain name"},
		"LegacyDash": {
			reason: "a legacy key that is only a digest is an error",
			key:    keys.LegacyKey(strings.Repeat("a", 55), "update-fn"), want: "begins and ends",
		},
		"LegacyLong": {
			reason: "a legacy key over the limit is an error", key: keys.LegacyKey(long, strings.Repeat("x", 64)),
			want: "at most 63",
		},
		"Marker": {reason: "the key of the marker is valid", key: keys.MarkerKey("a.org")},
		"Current": {
			reason: "the current form is valid with a long prefix", key: keys.CurrentKey(long, strings.Repeat("x", 64)),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			requireErrorText(t, tc.reason, keys.ValidateKey(tc.key), tc.want)
		})
	}
}
