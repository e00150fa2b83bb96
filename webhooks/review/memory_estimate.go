package review

import (
	"bytes"

	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
)

// The approximate memory of parts of a JSON text as Go values, in bytes.
const (
	objectBytes = 336 // a map with space for eight members
	memberBytes = 48  // in a map with more than eight members
	listBytes   = 48
	itemBytes   = 24 // an interface with a small value
	stringBytes = 32 // in addition to its characters
)

// EstimateMemory estimates how many bytes the values of a review take once they are decoded, by its text alone.
// Usually, the estimate is too high, which is safe. A text of many small objects takes fifty times its size.
func EstimateMemory(body []byte) int64 {
	var objects, lists, members, commas, strings, characters int64
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '"':
			// Strings are skipped as a whole, because they can contain the characters of the other cases.
			end := jsontext.SkipString(body, at)
			if end == 0 {
				return int64(len(body)) // not JSON, so it will not be decoded
			}
			strings++
			characters += int64(end - at)
			at = end - 1
		case '{':
			objects++
		case '[':
			lists++
		case ':':
			members++
		case ',':
			commas++
		}
	}
	// An object with n members has n-1 commas, and so does a list with n items.
	items := max(commas-members+objects, 0) + lists
	return int64(len(body)) + objects*objectBytes + max(members-8*objects, 0)*memberBytes +
		lists*listBytes + (items+members)*itemBytes + strings*stringBytes + characters
}

// IsDeletion reports whether the start of a review contains the operation DELETE. API servers write the operation
// before the objects, so the rest may be missing.
func IsDeletion(beginning []byte) (is bool) {
	_, request, _ := bytes.Cut(beginning, []byte(`"request":`))
	// The text may end within an object, which stops the iteration.
	jsontext.EachMember(request, func(m jsontext.RawMember) {
		if string(m.Key) == "operation" {
			is = string(m.Value) == `"DELETE"`
		}
	})
	return is
}
