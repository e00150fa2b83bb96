package keys_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/storage/keys"
)

// check compares an error with what is expected of its text; an empty text means no error.
func check(t *testing.T, reason string, err error, want string) {
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
		"Empty":         {reason: "there is nothing to persist under", id: "", want: "it is empty"},
		"Slash":         {reason: "URL paths have no empty segments", id: "/fn", want: `its part ""`},
		"TrailingSlash": {reason: "URL paths have no empty segments", id: "fn/", want: `its part ""`},
		"DoubleSlash":   {reason: "routers collapse empty segments", id: "a//b", want: `its part ""`},
		"Parent":        {reason: "routers resolve dots", id: "a/../b", want: `its part ".."`},
		"Self":          {reason: "routers resolve dots", id: "a/./b", want: `its part "."`},
		"BrokenUTF8":    {reason: "JSON cannot carry it", id: "a\xff", want: "UTF-8"},
		"Control": {
			reason: "unreadable, even after the cut", id: strings.Repeat("x", 64) + "\n", want: "control",
		},
		"Lambda":      {reason: "a colon is not allowed", id: "lambda:/srv/app.py:12", want: "':' at position 6"},
		"Space":       {reason: "a space is not allowed", id: "my fn", want: "' ' at position 2"},
		"Letter":      {reason: "only ASCII is allowed", id: "über", want: "'ü' at position 0"},
		"Underscored": {reason: "Kubernetes wants a letter or a digit first", id: "_private", want: "begins or ends"},
		"EndsWithSign": {
			reason: "the bracket becomes an underscore, and that cannot be last", id: "Class.<lambda>",
			want: "begins or ends",
		},
		"DiffBase": {
			reason: "the record would overwrite the diff-base", id: "last-handled-configuration",
			want: "framework's own",
		},
		"Apart": {
			reason: "the record would bind the memory", id: "handled-uid-ofSecret", want: "framework's own",
		},
		"Marker": {reason: "the record would overwrite the marker", id: "kopf-managed", want: "framework's own"},
		"Touch":  {reason: "the record would be touched", id: "touch-dummy", want: "framework's own"},
		"Children": {
			reason: "the record would be taken for a list of children", id: "children-of.fn", want: "framework's own",
		},
		"DeclaredIn": {
			reason: "a child that has handlers would lose what names its record", id: "declared-in",
			want: "framework's own",
		},
		"RunChildren": {reason: "so would this one", id: "children-of-run.fn", want: "framework's own"},
		"LastDigit":   {reason: "digits may be last", id: "step-9"},
		"Remedy":      {reason: "the text says what to do", id: "a b", want: "choose an id of letters"},
		"Simple":      {reason: "a usual id", id: "create_fn"},
		"Field":       {reason: "a handler of a field", id: "fn/spec.field"},
		"Nested":      {reason: "a local function of Python", id: "outer.<locals>.fn"},
		"Long":        {reason: "the digest makes it short enough", id: strings.Repeat("handler/", 30) + "fn"},
		"LongTail":    {reason: "what the cut removes cannot be refused", id: strings.Repeat("x", 64) + "_"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, tc.reason, keys.ValidateID(tc.id), tc.want)
		})
	}
}

func TestValidatePrefix(t *testing.T) {
	tests := map[string]struct {
		reason string
		prefix string
		want   string
	}{
		"Empty":      {reason: "annotations without a prefix are the user's", prefix: "", want: "empty"},
		"Slash":      {reason: "the slash is what follows", prefix: "a.org/x", want: "other characters"},
		"UpperCase":  {reason: "finalizers do not allow it", prefix: "Example.org", want: "other characters"},
		"Underscore": {reason: "not a domain", prefix: "my_op.org", want: "other characters"},
		"Letters":    {reason: "only ASCII is allowed", prefix: "bücher.org", want: "other characters"},
		"EmptyPart":  {reason: "not a domain", prefix: "a..org", want: `the part ""`},
		"Dash":       {reason: "not a domain", prefix: "a-.org", want: `the part "a-"`},
		"LongOne":    {reason: "longer than a domain", prefix: strings.Repeat("a", 254), want: "more than 253"},
		"Remedy":     {reason: "the text says what to do", prefix: "", want: "use a domain name"},
		"Longest":    {reason: "as long as a domain", prefix: strings.Repeat("a", 253)},
		"Kopf":       {reason: "the default of Kopf", prefix: keys.KopfPrefix},
		"OneWord":    {reason: "a domain without dots", prefix: "my-operator2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, tc.reason, keys.ValidatePrefix(tc.prefix), tc.want)
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
		"NoPrefix":   {reason: "ours always have one", key: "fn", want: "no prefix"},
		"NoName":     {reason: "the name is mandatory", key: "a.org/", want: "name is empty"},
		"TwoSlashes": {reason: "the name has no slashes", key: "a.org/b/c", want: "'/' at position 1"},
		"BadPrefix":  {reason: "both sides are checked", key: "-/fn", want: "the prefix"},
		"LegacyDash": {
			reason: "the legacy form is nothing but a digest with such prefixes",
			key:    keys.V1(strings.Repeat("a", 55), "update-fn"), want: "begins or ends",
		},
		"LegacyLong": {
			reason: "the legacy form exceeds the limit with such prefixes", key: keys.V1(long, strings.Repeat("x", 64)),
			want: "more than 63",
		},
		"Marker": {reason: "what the framework writes is accepted", key: keys.MarkerKey("a.org")},
		"Current": {
			reason: "the current form is accepted with any prefix", key: keys.V2(long, strings.Repeat("x", 64)),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			check(t, tc.reason, keys.ValidateKey(tc.key), tc.want)
		})
	}
}

// The rules are re-stated in this package to keep it light; here they are held against the genuine ones.
func FuzzValidateKey(f *testing.F) {
	for _, key := range []string{"", "/", "a.org/fn", "a.org/-x", "A.org/fn", "a..b/x_y.z", "a-b.c/Fn0", "a/é", "é/a"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		prefix, _, found := strings.Cut(key, "/")
		genuine := found && len(validation.IsQualifiedName(key)) == 0
		if err := keys.ValidateKey(key); (err == nil) != genuine {
			t.Errorf("ValidateKey(%q) = %v, Kubernetes says %v", key, err, validation.IsQualifiedName(key))
		}
		genuine = len(validation.IsDNS1123Subdomain(prefix)) == 0
		if err := keys.ValidatePrefix(prefix); (err == nil) != genuine {
			t.Errorf("ValidatePrefix(%q) = %v, Kubernetes says %v", prefix, err, validation.IsDNS1123Subdomain(prefix))
		}
	})
}
