// Not part of the public API.
//
// Package asciijson encodes JSON values in the form in which annotations store them: compact, in ASCII, with sorted
// keys. [Marshal] encodes a value; [IsEncodingOf] and [EncodedSize] compare and measure the encoding without allocating
// it.
//
// It is separate from encoding/json because the texts are compared with those of Kopf's operators: both must write the
// same text, including "<>&", and decoders must restore the same value, including whole floats.
//
// The package does not decode; internal/jsontext does. Package diffbase encodes essences with it, and progress encodes
// records.
package asciijson
