package review

import (
	"bytes"

	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

// What the parts of a JSON text take in memory as Go values, in bytes.
const (
	weightOfObject = 336 // a map with room for eight members
	weightOfMember = 48  // in a map with more of them
	weightOfList   = 48
	weightOfItem   = 24 // an interface with a small value
	weightOfString = 32 // in addition to its characters
)

// Weigh estimates how many bytes the values of a review take once they are decoded, from its text alone. For most
// reviews, it is an overestimate. A text of small objects takes fifty times its size.
func Weigh(body []byte) int64 {
	var objects, lists, members, commas, strings, characters int64
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '"':
			end := jsontext.PastString(body, at)
			if end == 0 {
				return int64(len(body)) // it is not JSON, and will not be decoded
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
	// An object and a list have one comma less than members or items.
	items := max(commas-members+objects, 0) + lists
	return int64(len(body)) + objects*weightOfObject + max(members-8*objects, 0)*weightOfMember +
		lists*weightOfList + (items+members)*weightOfItem + strings*weightOfString + characters
}

// IsDeletion finds the operation DELETE in the beginning of a review, where API servers write it. The rest of the
// review may be missing.
func IsDeletion(beginning []byte) (is bool) {
	_, request, _ := bytes.Cut(beginning, []byte(`"request":`))
	jsontext.Members(request, func(m jsontext.Member) {
		if string(m.Key) == "operation" {
			is = string(m.Value) == `"DELETE"`
		}
	})
	return is
}
