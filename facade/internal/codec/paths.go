package codec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	errEmptyKey = errors.New("a key is empty")
	errQuote    = errors.New(`a key in double quotes does not end before a dot, as in metadata.annotations."a.b/c"`)
)

// ParsePath splits a path such as `metadata.labels."a.b/c"` at its dots, but not inside of double quotes. Inside, a
// backslash stands before a quote or a backslash that is a part of the key. A path into a label or an annotation, of
// which there are none, means a key with dots: the error says to quote it.
func ParsePath(text string) (diff.Path, error) {
	path, err := split(text)
	if err == nil && len(path) > 3 && path[0] == "metadata" && (path[1] == "labels" || path[1] == "annotations") {
		err = quoteKey(path, 2)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid path %s: %w", text, err)
	}
	return path, nil
}

func split(text string) (path diff.Path, err error) {
	for rest, more := text, true; more; {
		var key string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			if key, rest, ok = unquote(quoted); !ok || rest != "" && rest[0] != '.' {
				return nil, errQuote
			}
			rest, more = strings.CutPrefix(rest, ".")
		} else {
			key, rest, more = strings.Cut(rest, ".")
			if strings.Contains(key, `"`) {
				return nil, errQuote
			}
		}
		if key == "" {
			return nil, errEmptyKey
		}
		path = append(path, key)
	}
	return path, nil
}

// unquote gives the key before the closing quote, and what is after that.
func unquote(text string) (key, rest string, closed bool) {
	var b strings.Builder
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

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// FormatPath gives the path as ParsePath reads it: keys with dots or quotes are in quotes.
func FormatPath(path diff.Path) string {
	keys := make([]string, 0, len(path))
	for _, key := range path {
		if key == "" || strings.ContainsAny(key, `."`) {
			key = `"` + escapes.Replace(key) + `"`
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ".")
}

// quoteKey says that the keys from the given one on are meant to be one.
func quoteKey(path diff.Path, from int) error {
	meant := slices.Concat(path[:from], diff.Path{strings.Join(path[from:], ".")})
	return fmt.Errorf("quote keys with dots: %s", FormatPath(meant))
}
