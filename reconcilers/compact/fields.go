package compact

import "google.golang.org/protobuf/encoding/protowire"

// Field is one field of a protobuf message. Its parts are parts of the message.
type Field struct {
	Number protowire.Number
	// Value is the content of texts, of bytes and of messages within the message; nil of all others.
	Value []byte
	// Whole is the field as it stands in the message.
	Whole []byte
}

// Fields shows every field of a protobuf message in their order. It returns false where it is not well-formed; nobody
// looks into what comes after that, or into values.
func Fields(message []byte, show func(Field)) (whole bool) {
	for len(message) > 0 {
		number, wire, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, wire, message[tag:])
		if size < 0 {
			return false
		}
		f := Field{Number: number, Whole: message[:tag+size]}
		if wire == protowire.BytesType {
			f.Value, _ = protowire.ConsumeBytes(message[tag:])
		}
		show(f)
		message = message[tag+size:]
	}
	return true
}
