package progress

import "strings"

// Trace identifies a span of a trace, in the format of the header traceparent in version 00 of W3C's Trace Context:
// "00-<32 hexadecimal digits of the trace>-<16 of the span>-<2 of flags>", in lower case. It is empty if there is no
// trace.
type Trace string

// IsValid reports whether the trace is well-formed and identifies a span. The identifiers must not be zero.
func (t Trace) IsValid() bool {
	parts := strings.Split(string(t), "-")
	if len(parts) != 4 || parts[0] != "00" {
		return false
	}
	trace, span, flags := parts[1], parts[2], parts[3]
	return isHex(trace, 32) && isHex(span, 16) && isHex(flags, 2) &&
		strings.Trim(trace, "0") != "" && strings.Trim(span, "0") != ""
}

// isHex reports whether the text has this length and only lower-case hexadecimal digits.
func isHex(text string, length int) bool {
	return len(text) == length && strings.Trim(text, "0123456789abcdef") == ""
}

// decodeTrace decodes a trace. A malformed one is empty: no handler depends on it, so it must not block an object.
func decodeTrace(value any) Trace {
	text, _ := value.(string)
	if trace := Trace(text); trace.IsValid() {
		return trace
	}
	return ""
}
