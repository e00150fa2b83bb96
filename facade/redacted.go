package facade

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Redacted keeps the values of these fields, with all that is in them, out of what is remembered of the objects: only
// digests are. So is every v1 Secret as a whole, and an object of more than 100 KiB of JSON; with [AsKopf], which has
// to be read by Kopf, only what is given here and what does not fit otherwise.
//
// That such a value has changed is seen as ever, and handlers see the present one in c.Object. But in c.Diff, there are
// paths without values, and in c.Old, what has changed is zero. Keys of mappings stay readable; a list is one value,
// and a path through a list means the list. For who can try out values, see [DigestKey].
//
// A path is of keys with dots between them; a key with dots stands in double quotes: `metadata.annotations."a.b/c"`. As
// handlers of one kind share what is remembered, it holds for all of them. Fields may become redacted, and be no
// longer, without any object looking updated; what was remembered before is replaced when the object is handled next.
func (s Selection[T]) Redacted(paths ...string) Selection[T] {
	for _, text := range paths {
		path, err := parsePath(text)
		if err != nil {
			s.kind.mistake(fmt.Errorf("Redacted: %w", err))
			continue
		}
		s.redacted = append(slices.Clip(s.redacted), path)
	}
	return s
}

var (
	errEmptyKey = errors.New("a key is empty")
	errQuote    = errors.New(`a key in double quotes does not end before a dot, as in metadata.annotations."a.b/c"`)
)

// parsePath splits a path at its dots, but not inside of double quotes.
func parsePath(text string) (diff.Path, error) {
	var path diff.Path
	for rest, more := text, true; more; {
		var key string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			var closed bool
			key, rest, closed = strings.Cut(quoted, `"`)
			if !closed || rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("invalid path %q: %w", text, errQuote)
			}
			rest, more = strings.CutPrefix(rest, ".")
		} else {
			key, rest, more = strings.Cut(rest, ".")
			if strings.Contains(key, `"`) {
				return nil, fmt.Errorf("invalid path %q: %w", text, errQuote)
			}
		}
		if key == "" {
			return nil, fmt.Errorf("invalid path %q: %w", text, errEmptyKey)
		}
		path = append(path, key)
	}
	return path, nil
}
