package codec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	errEmptyKey      = errors.New("a key is empty")
	errUnclosedQuote = errors.New(
		`a key in double quotes does not end before a dot, as in metadata.annotations."a.b/c"`)
)

// ParsePath splits a path such as `metadata.labels."a.b/c"` at its dots, except inside double quotes. Within quotes, a
// backslash begins an escape, as in Go. A path that continues below a label or an annotation is an error that says
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
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			rest = rest[len(quoted):]
			// A closing quote must end the key.
			if err != nil || rest != "" && rest[0] != '.' {
				return nil, errUnclosedQuote
			}
			key, _ = strconv.Unquote(quoted) // it is a quoted text
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

// FormatPath returns the text that ParsePath parses to this path: keys with dots or quotes are quoted.
func FormatPath(path diff.Path) string {
	keys := make([]string, 0, len(path))
	for _, key := range path {
		// An empty key cannot be parsed, but it is visible in messages.
		if key == "" || strings.ContainsAny(key, `."`) {
			key = strconv.Quote(key)
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

// ErrNoValue is the error for a path without a value, or with null.
var ErrNoValue = errors.New("there is no value")

// ReadPath decodes the value at a path of an object into a pointer. A time.Duration is parsed from a string. The
// decoded value shares nothing with the object. Errors never contain texts of the object, which may be secret.
func ReadPath(object map[string]any, path string, into any) error {
	keys, err := ParsePath(path)
	if err != nil {
		return err
	}
	value, err := valueAtPath(object, keys)
	if err != nil {
		return err
	}
	return decodeInto(value, into)
}

// valueAtPath returns the value at a path, or ErrNoValue. It is a part of the object, not a copy.
func valueAtPath(object map[string]any, path diff.Path) (any, error) {
	var value any = object
	for i, key := range path {
		// Lists are not searched: a path has no syntax for indices.
		mapping, ok := value.(map[string]any)
		switch {
		// A missing parent has no value either.
		case !ok && value == nil:
			return nil, ErrNoValue
		case !ok:
			return nil, noMapError(path[:i], value)
		}
		value = mapping[key]
	}
	if value == nil {
		return nil, ErrNoValue
	}
	return value, nil
}

// noMapError returns the error for a path that continues after a value without keys.
func noMapError(path diff.Path, value any) error {
	return fmt.Errorf("%s is %s: it has no keys", FormatPath(path), describeType(value))
}

// describeType names the type of a value for messages. It never contains a text of the object.
func describeType(value any) string {
	switch value := value.(type) {
	case string:
		return "a string"
	case bool:
		return fmt.Sprintf("the bool %t", value)
	case []any:
		return fmt.Sprintf("a list of %d items", len(value))
	case map[string]any:
		return fmt.Sprintf("a mapping of %d keys", len(value))
	// Numbers and booleans are not texts, so they are shown.
	case int64, float64, int, int32:
		return fmt.Sprintf("the number %v", value)
	default:
		return fmt.Sprintf("a %T", value)
	}
}

// decodeInto decodes a value of an object. It handles durations, which are strings in Kubernetes objects.
func decodeInto(value, into any) error {
	// JSON has no durations; decoding into an int64 would accept only nanoseconds.
	if duration, ok := into.(*time.Duration); ok {
		return decodeDuration(value, duration)
	}
	err := DecodeValue(value, into)
	if err == nil {
		return nil
	}
	// The mismatch may be inside; other errors may contain texts of the object.
	var inside *MismatchError
	if isNested(value) && errors.As(err, &inside) {
		return fmt.Errorf("it is %s: %w", describeType(value), inside)
	}
	// The decoder's error is omitted, because it can quote the value.
	return fmt.Errorf("it is %s", describeType(value))
}

// decodeDuration parses a duration. Its errors do not repeat the text, which may be secret.
func decodeDuration(value any, into *time.Duration) (err error) {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf(`it is %s: a duration is a string with a unit, such as "5m"`, describeType(value))
	}
	if *into, err = time.ParseDuration(text); err != nil {
		return errors.New(`it is a string, but not a duration such as "5m" or "1h30m"`)
	}
	return nil
}

// SetPath sets the value at a path and returns the object. It creates the object if it is nil, and missing maps on the
// path. Null removes the value. After an error, the object is unchanged.
func SetPath(object map[string]any, text string, value any) (map[string]any, error) {
	path, err := ParsePath(text)
	if err != nil {
		return nil, err
	}
	// The encoded value shares nothing with the argument, which the caller may modify later.
	encoded, err := encodeField(value)
	if err != nil {
		return nil, fmt.Errorf("the value is not a JSON value: %w", err)
	}
	// All checks precede the first change.
	above := path[:len(path)-1]
	holder, err := valueAtPath(object, above)
	parent, isMap := holder.(map[string]any)
	switch {
	case err != nil && !errors.Is(err, ErrNoValue):
		return nil, err
	case err == nil && !isMap:
		return nil, noMapError(above, holder)
	case encoded != nil:
		return setCreatingMaps(object, path, encoded), nil
	}
	// A null removes the value, and the maps above it stay.
	delete(parent, path[len(path)-1])
	return object, nil
}

// setCreatingMaps sets the value and creates missing maps on the path. The caller has checked that nothing but maps or
// absent values is on the path.
func setCreatingMaps(object map[string]any, path diff.Path, value any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	// The last key is set below; the others lead to its map.
	at := object
	for _, key := range path[:len(path)-1] {
		// A null on the path counts as absent.
		next, ok := at[key].(map[string]any)
		if !ok || next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
	return object
}

// encodeField returns the JSON form of a value. A duration becomes a string, as ReadPath expects it.
func encodeField(value any) (any, error) {
	if duration, ok := value.(time.Duration); ok {
		return duration.String(), nil
	}
	return EncodeValue(value)
}
