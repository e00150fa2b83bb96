package codec

import "strings"

// nearest gives the name that is one letter off, or has other capitals; empty if there is none.
func nearest(key string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(key, name) || len(key) > 2 && (oneOff(key, name) || isInflected(key, name)) {
			return name
		}
	}
	return ""
}

// isInflected is true if one text is the other one with up to three letters more, such as suspend and suspended.
func isInflected(a, b string) bool {
	return (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) && max(len(a), len(b))-min(len(a), len(b)) <= 3
}

// oneOff is true for texts that differ by one letter: another, missing or further one, or two that change places.
func oneOff(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(b) == len(a)+1:
		return a[i:] == b[i+1:]
	case len(b) != len(a) || i == len(a):
		return false
	case a[i+1:] == b[i+1:]:
		return true
	default:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
}
