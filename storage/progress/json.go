package progress

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
)

// Fields returns the record as a JSON object: the form in which it stands in the status. It has nulls for nil fields,
// except for keys that were absent when the record was read; times are in UTC.
func (r Record) Fields() map[string]any {
	object := make(map[string]any, len(fields)+len(r.Unknown))
	maps.Copy(object, r.Unknown)
	for place, field := range fields {
		if value := encodeField(field.in(&r)); value != nil || !r.omits(place) {
			object[field.key] = value
		}
	}
	return object
}

// encode returns the record as text: the form in which it stands in annotations. Nulls are written only if verbose.
func (r Record) encode(verbose bool) (string, error) {
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
		text, err = asciijson.Append(text, value)
		return err
	}
	for place, field := range fields {
		value := encodeField(field.in(&r))
		if value == nil && r.omits(place) {
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

// typicalLength is room for a record with all three times and a short message, in bytes.
const typicalLength = 256

// encodeField gives the JSON value of a field, given the pointer to it.
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

// valueOrNil gives what a pointer points to.
func valueOrNil[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}

// DecodeRecord reads a record from a JSON object, such as one of the status. Unknown keys are kept aside.
//
// It is an error, naming the key, if a value is not of the key's type: a string of ISO 8601 for times, an integer from
// 0 for retries (or a float that is one), a list of strings for subrefs; a null is good for each.
func DecodeRecord(object map[string]any) (Record, error) {
	var record Record
	known := 0
	for place, field := range fields {
		value, ok := object[field.key]
		if !ok {
			record.absent |= 1 << place
			continue
		}
		known++
		if value == nil {
			continue
		}
		if err := decodeField(field.in(&record), value); err != nil {
			return Record{}, fmt.Errorf("key %s: %w", field.key, err)
		}
		record.foreign = record.foreign || isRespelled(field.in(&record), value)
	}
	if known < len(object) {
		record.Unknown = unknownKeys(object, len(object)-known)
	}
	return record, nil
}

// isRespelled tells whether a time was written otherwise than it would be here, given the pointer to it. Its offset is
// not minded.
func isRespelled(field, value any) bool {
	moment, isTime := field.(**time.Time)
	return isTime && FormatTimestamp(**moment) != value
}

// unknownKeys gives the part of the object that has no fields.
func unknownKeys(object map[string]any, count int) map[string]any {
	rest := make(map[string]any, count)
	maps.Copy(rest, object)
	for _, field := range fields {
		delete(rest, field.key)
	}
	return rest
}

// decodeText reads a record from the value of an annotation; nil if there is none.
func decodeText(value any) (*Record, error) {
	object, err := storage.Parse(value)
	if err != nil || object == nil {
		return nil, err
	}
	record, err := DecodeRecord(object)
	if err != nil {
		return nil, err
	}
	record.foreign = record.foreign || len(record.Unknown) > 0
	return &record, nil
}

var (
	errNotString  = errors.New("it is not a string")
	errNotBoolean = errors.New("it is not a boolean")
	errNotCount   = errors.New("it is not a whole number from 0")
	errNotStrings = errors.New("it is not a list of strings")
)

// decodeField reads a value into a field of a record, given the pointer to that.
func decodeField(field, value any) (err error) {
	switch field := field.(type) {
	case **time.Time:
		*field, err = decodeTime(value)
	case **string:
		*field, err = asType[string](value, errNotString)
	case **int64:
		*field, err = decodeCount(value)
	case **bool:
		*field, err = asType[bool](value, errNotBoolean)
	case *Trace:
		*field = decodeTrace(value)
	case *[]string:
		*field, err = decodeStrings(value)
	default:
		panic(fmt.Sprintf("a record has no field of type %T", field))
	}
	return err
}

func asType[T any](value any, otherwise error) (*T, error) {
	typed, ok := value.(T)
	if !ok {
		return nil, otherwise
	}
	return &typed, nil
}

func decodeTime(value any) (*time.Time, error) {
	text, err := asType[string](value, errNotString)
	if err != nil {
		return nil, err
	}
	t, err := ParseTimestamp(*text)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// toCount takes floats too: scripts that edit objects may have no other numbers.
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
