package progress

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage"
)

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
			record.lacking |= 1 << place
			continue
		}
		known++
		if value == nil {
			continue
		}
		if err := set(field.in(&record), value); err != nil {
			return Record{}, fmt.Errorf("key %s: %w", field.key, err)
		}
		record.foreign = record.foreign || respelled(field.in(&record), value)
	}
	if known < len(object) {
		record.Unknown = unknown(object, len(object)-known)
	}
	return record, nil
}

// respelled tells whether a time was written otherwise than it would be here, given the pointer to it. Its offset is
// not minded.
func respelled(field, value any) bool {
	moment, isTime := field.(**time.Time)
	return isTime && FormatTimestamp(**moment) != value
}

func unknown(object map[string]any, count int) map[string]any {
	rest := make(map[string]any, count)
	maps.Copy(rest, object)
	for _, field := range fields {
		delete(rest, field.key)
	}
	return rest
}

// parse reads a record from the value of an annotation; nil if there is none.
func parse(value any) (*Record, error) {
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

// set reads a value into a field of a record, given the pointer to that.
func set(field, value any) (err error) {
	switch field := field.(type) {
	case **time.Time:
		*field, err = toTime(value)
	case **string:
		*field, err = to[string](value, errNotString)
	case **int64:
		*field, err = toCount(value)
	case **bool:
		*field, err = to[bool](value, errNotBoolean)
	case *[]string:
		*field, err = toStrings(value)
	default:
		panic(fmt.Sprintf("a record has no field of type %T", field))
	}
	return err
}

func to[T any](value any, otherwise error) (*T, error) {
	typed, ok := value.(T)
	if !ok {
		return nil, otherwise
	}
	return &typed, nil
}

func toTime(value any) (*time.Time, error) {
	text, err := to[string](value, errNotString)
	if err != nil {
		return nil, err
	}
	t, err := ParseTimestamp(*text)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// toCount takes floats too: whoever edits objects by a script may have no other numbers.
func toCount(value any) (*int64, error) {
	count, ok := value.(int64)
	if float, isFloat := value.(float64); isFloat && math.Trunc(float) == float && float < math.MaxInt64 {
		count, ok = int64(float), true
	}
	if !ok || count < 0 {
		return nil, errNotCount
	}
	return &count, nil
}

func toStrings(value any) ([]string, error) {
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
