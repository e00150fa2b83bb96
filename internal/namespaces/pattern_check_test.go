package namespaces_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// TestCheck shows that patterns that match less than they seem to are errors (deviation D-namespace-mistakes).
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              `"" is the name of no namespace`,
		" ":             `" " is the name of no namespace`,
		"a]":            `']' is in no name`,
		"Team_A":        `"Team_A" is not the name of a namespace`,
		"a b":           `"a b" is not the name of a namespace`,
		"a,b":           `"a,b" does not match the namespaces of "b"`,
		"a*,b*,!c":      `"a*,b*,!c" does not match the namespaces of "b*"`,
		"a*,":           "nothing before or after a comma",
		"!":             "nothing before or after a comma",
		",a":            "nothing before or after a comma",
		"Team-*":        `'T' is in no name`,
		"ns/*":          `'/' is in no name`,
		"ns[0-9":        "a bracket is not closed",
		"ns[":           "a bracket is not closed",
		"[a]z-0*9":      "",
		"a":             "",
		"a-*":           "",
		"ns[!A-Z]?":     "",
		"!*-pr-*":       "",
		"a*,!ab*, abc":  "",
		"!a, a1":        "",
		" !a":           "",
		"*":             "",
		"kube-*,!*stem": "",
	} {
		switch err := namespaces.CheckPattern(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
