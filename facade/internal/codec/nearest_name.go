package codec

import "strings"

// nearestName returns the name that is most likely meant by a misspelled key: with one letter changed, with other
// capitals, or with another ending. It returns "" without such a name. Very short keys would match almost anything, so
// they are compared only by their letters.
func nearestName(key string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(key, name) || len(key) > 2 && (differsByOne(key, name) || isInflected(key, name)) {
			return name
		}
	}
	return ""
}

// isInflected reports whether one text extends the other by up to three letters, such as suspend and suspended.
func isInflected(a, b string) bool {
	return (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) && max(len(a), len(b))-min(len(a), len(b)) <= 3
}

// differsByOne reports whether two texts differ by one changed, missing or additional letter, or by two swapped
// neighbours.
func differsByOne(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	// The common prefix is skipped; one edit must explain the rest.
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	// One letter more.
	case len(b) == len(a)+1:
		return a[i:] == b[i+1:]
	case len(b) != len(a) || i == len(a):
		return false
	// One other letter.
	case a[i+1:] == b[i+1:]:
		return true
	// Two swapped letters.
	default:
		return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
}
