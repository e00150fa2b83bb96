package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	errEmptyKey      = errors.New("a key is empty")
	errUnclosedQuote = errors.New(
		`a key in double quotes does not end before a dot, as in metadata.annotations."a.b/c"`)
)

// ParsePath splits a path such as `metadata.labels."a.b/c"` at its dots, except inside double quotes. Within quotes, a
// backslash escapes a quote or a backslash. A path that continues below a label or an annotation is an error that says
// to quote the key: their values have no fields, so a key with dots was meant.
func ParsePath(text string) (diff.Path, error) {
	path, err := splitKeys(text)
	// Labels and annotations are strings, so a longer path can only be a key with dots.
	if err == nil && len(path) > 3 && path[0] == "metadata" && (path[1] == "labels" || path[1] == "annotations") {
		err = suggestQuotedKey(path, 2)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid path %s: %w", text, err)
	}
	return path, nil
}

// splitKeys returns the keys of a path.
func splitKeys(text string) (path diff.Path, err error) {
	// After a trailing dot, more is true and the rest is empty, which is an empty key.
	for rest, more := text, true; more; {
		var key string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			// A closing quote must end the key.
			if key, rest, ok = unquoteKey(quoted); !ok || rest != "" && rest[0] != '.' {
				return nil, errUnclosedQuote
			}
			rest, more = strings.CutPrefix(rest, ".")
		} else {
			key, rest, more = strings.Cut(rest, ".")
			// A quote in the middle of a key is an error, so that quoting has only one form.
			if strings.Contains(key, `"`) {
				return nil, errUnclosedQuote
			}
		}
		if key == "" {
			return nil, errEmptyKey
		}
		path = append(path, key)
	}
	return path, nil
}

// unquoteKey returns the key before the closing quote, and the rest of the text after it.
func unquoteKey(text string) (key, rest string, closed bool) {
	var b strings.Builder
	// Bytes are enough: quotes and backslashes are never part of a multi-byte character in UTF-8.
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// escapes adds the backslashes that ParsePath removes inside of quotes.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// FormatPath returns the text that ParsePath parses to this path: keys with dots or quotes are quoted.
func FormatPath(path diff.Path) string {
	keys := make([]string, 0, len(path))
	for _, key := range path {
		// An empty key cannot be parsed, but it is visible in messages.
		if key == "" || strings.ContainsAny(key, `."`) {
			key = `"` + escapes.Replace(key) + `"`
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ".")
}

// suggestQuotedKey returns the error that suggests one quoted key for all keys from the given index on.
func suggestQuotedKey(path diff.Path, from int) error {
	meant := slices.Concat(path[:from], diff.Path{strings.Join(path[from:], ".")})
	return fmt.Errorf("quote keys with dots: %s", FormatPath(meant))
}
