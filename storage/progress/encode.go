package progress

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
)

// Fields returns the record as a JSON object: the form in which it stands in the status. It has nulls for nil fields,
// except for keys that were absent when the record was read; times are in UTC.
func (r Record) Fields() map[string]any {
	object := make(map[string]any, len(fields)+len(r.Unknown))
	maps.Copy(object, r.Unknown)
	for place, field := range fields {
		if value := plain(field.in(&r)); value != nil || !r.omits(place) {
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
		value := plain(field.in(&r))
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

// plain is the JSON value of a field, given the pointer to it.
func plain(field any) any {
	switch field := field.(type) {
	case **time.Time:
		if *field == nil {
			return nil
		}
		return FormatTimestamp((*field).UTC())
	case **string:
		return pointed(*field)
	case **int64:
		return pointed(*field)
	case **bool:
		return pointed(*field)
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

func pointed[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}
