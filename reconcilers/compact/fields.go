package compact

import "google.golang.org/protobuf/encoding/protowire"

// MessageField is one field of a protobuf message. Its slices are parts of the message.
type MessageField struct {
	Number protowire.Number
	// Value is the content of strings, bytes and nested messages. It is nil for other types.
	Value []byte
	// Encoded is the complete field with its tag.
	Encoded []byte
}

// EachField calls show for every field of a protobuf message in their order. It returns false where the message is
// malformed, and stops there. It does not check the values of fields.
func EachField(message []byte, show func(MessageField)) (whole bool) {
	for len(message) > 0 {
		number, wire, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, wire, message[tag:])
		if size < 0 {
			return false
		}
		f := MessageField{Number: number, Encoded: message[:tag+size]}
		if wire == protowire.BytesType {
			f.Value, _ = protowire.ConsumeBytes(message[tag:])
		}
		show(f)
		message = message[tag+size:]
	}
	return true
}
