package progress

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage"
)

// JSONFields returns the record as a JSON object, which is its form in the status. Nil fields are nulls, except for
// keys that were absent when the record was read. Times are in UTC.
func (r Record) JSONFields() map[string]any {
	object := make(map[string]any, len(recordFields)+len(r.Unknown))
	maps.Copy(object, r.Unknown)
	for place, field := range recordFields {
		if value := encodeField(field.pointerTo(&r)); value != nil || !r.omitsField(place) {
			object[field.key] = value
		}
	}
	return object
}

// encodeText returns the record as text, which is its form in annotations. It writes nulls only if verbose is true. The
// order of keys is Kopf's, followed by the unknown keys.
func (r Record) encodeText(verbose bool) (string, error) {
	text := make([]byte, 0, typicalLength)
	text = append(text, '{')
	add := func(key string, value any) (err error) {
		if value == nil && !verbose {
			return nil
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(asciijson.AppendString(text, key), ':')
		text, err = asciijson.AppendValue(text, value)
		return err
	}
	for place, field := range recordFields {
		value := encodeField(field.pointerTo(&r))
		if value == nil && r.omitsField(place) {
			continue
		}
		if err := add(field.key, value); err != nil {
			return "", fmt.Errorf("%s: %w", field.key, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.Unknown)) {
		if err := add(key, r.Unknown[key]); err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
	}
	return string(append(text, '}')), nil
}

// typicalLength is the size, in bytes, of a record with all three times and a short message.
const typicalLength = 256

// encodeField returns the JSON value of a field, given a pointer to the field. An untyped nil is a null.
func encodeField(field any) any {
	switch field := field.(type) {
	case **time.Time:
		if *field == nil {
			return nil
		}
		return FormatTimestamp((*field).UTC())
	case **string:
		return valueOrNil(*field)
	case **int64:
		return valueOrNil(*field)
	case **bool:
		return valueOrNil(*field)
	case *Trace:
		if *field == "" {
			return nil
		}
		return string(*field)
	case *[]string:
		if *field == nil {
			return nil
		}
		list := make([]any, len(*field))
		for i, element := range *field {
			list[i] = element
		}
		return list
	}
	panic(fmt.Sprintf("a record has no field of type %T", field))
}

// valueOrNil returns the value of a pointer, and an untyped nil for a nil pointer.
func valueOrNil[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}

// DecodeRecord decodes a record from a JSON object, such as one of the status. It keeps unknown keys in
// [Record.Unknown].
//
// # Errors
//
// It returns an error that names the key if a value does not have the key's type: an ISO 8601 string for times, a whole
// number that is not negative for retries, a list of strings for subrefs. A null is valid for every key.
func DecodeRecord(object map[string]any) (Record, error) {
	var record Record
	known := 0
	for place, field := range recordFields {
		value, ok := object[field.key]
		if !ok {
			// An absent key remains absent when the record is stored again.
			record.absentKeys |= 1 << place
			continue
		}
		known++
		if value == nil {
			continue
		}
		if err := decodeField(field.pointerTo(&record), value); err != nil {
			return Record{}, fmt.Errorf("key %s: %w", field.key, err)
		}
		// Decoding normalizes times, so a different spelling is detected here.
		record.foreign = record.foreign || isRespelled(field.pointerTo(&record), value)
	}
	if known < len(object) {
		record.Unknown = unknownKeys(object, len(object)-known)
	}
	return record, nil
}

// isRespelled reports whether a time was spelled differently from how this package writes it, given a pointer to the
// field. A different offset alone does not count.
func isRespelled(field, value any) bool {
	moment, isTime := field.(**time.Time)
	return isTime && FormatTimestamp(**moment) != value
}

// unknownKeys returns the count members of the object that are not fields of a record.
func unknownKeys(object map[string]any, count int) map[string]any {
	rest := make(map[string]any, count)
	maps.Copy(rest, object)
	for _, field := range recordFields {
		delete(rest, field.key)
	}
	return rest
}

// decodeText decodes a record from the value of an annotation. It returns nil if there is no record.
func decodeText(value any) (*Record, error) {
	object, err := storage.ParseObject(value)
	if err != nil || object == nil {
		return nil, err
	}
	record, err := DecodeRecord(object)
	if err != nil {
		return nil, err
	}
	// A new annotation replaces the whole text, and with it the unknown keys. A merge-patch of the status keeps them.
	record.foreign = record.foreign || len(record.Unknown) > 0
	return &record, nil
}

var (
	errNotString  = errors.New("it is not a string")
	errNotBoolean = errors.New("it is not a boolean")
	errNotCount   = errors.New("it is not a whole number from 0")
	errNotStrings = errors.New("it is not a list of strings")
)

// decodeField decodes a value into a field of a record, given a pointer to the field.
func decodeField(field, value any) (err error) {
	switch field := field.(type) {
	case **time.Time:
		*field, err = decodeTime(value)
	case **string:
		*field, err = pointerToType[string](value, errNotString)
	case **int64:
		*field, err = decodeCount(value)
	case **bool:
		*field, err = pointerToType[bool](value, errNotBoolean)
	case *Trace:
		*field = decodeTrace(value)
	case *[]string:
		*field, err = decodeStrings(value)
	default:
		panic(fmt.Sprintf("a record has no field of type %T", field))
	}
	return err
}

// pointerToType returns a pointer to the value if it has the type, and the given error otherwise.
func pointerToType[T any](value any, otherwise error) (*T, error) {
	typed, ok := value.(T)
	if !ok {
		return nil, otherwise
	}
	return &typed, nil
}

// decodeTime decodes a time.
func decodeTime(value any) (*time.Time, error) {
	text, err := pointerToType[string](value, errNotString)
	if err != nil {
		return nil, err
	}
	t, err := ParseTimestamp(*text)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// decodeCount decodes a count. It accepts whole floats, too: scripts that edit objects may not have other numbers.
func decodeCount(value any) (*int64, error) {
	count, ok := value.(int64)
	if float, isFloat := value.(float64); isFloat && math.Trunc(float) == float && float < math.MaxInt64 {
		count, ok = int64(float), true
	}
	if !ok || count < 0 {
		return nil, errNotCount
	}
	return &count, nil
}

// decodeStrings decodes a list of strings. An empty list is not nil, because it differs from an absent one.
func decodeStrings(value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errNotStrings
	}
	texts := make([]string, len(list))
	for i, element := range list {
		if texts[i], ok = element.(string); !ok {
			return nil, errNotStrings
		}
	}
	return texts, nil
}
