package configurations

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

const (
	// maxNameLength is the API server's limit for the name of an entry.
	maxNameLength = 253
	// minNameLabels is how many labels, separated by dots, the API server requires in the name of an entry.
	minNameLabels = 3
)

// entryName returns the name of the entry for an id.
func (f Form) entryName(id string) string {
	// Kopf does not make names valid, so the API server may reject them.
	if f.AsKopf {
		return withSuffix(escapeID(id), f.Suffix)
	}
	return f.validName(id)
}

// withSuffix appends the suffix, if there is one.
func withSuffix(name, suffix string) string {
	if suffix == "" {
		return name
	}
	return name + "." + suffix
}

// escapeID returns the id in the form that Kopf uses in names. Like Kopf, it keeps upper case and letters of all
// scripts, which the API server rejects.
func escapeID(id string) string {
	var name strings.Builder
	for _, char := range id {
		switch {
		case char == '/':
			name.WriteByte('.')
		case char == '_':
			name.WriteByte('-')
		case char == '.' || char == '-' || unicode.IsLetter(char) || unicode.IsNumber(char):
			name.WriteRune(char)
		default:
			// In Kopf, this is the hex of all bytes of the character in UTF-8.
			name.WriteString(hex.EncodeToString([]byte(string(char))))
		}
	}
	return name.String()
}

// validName returns Kopf's name if the API server accepts it. Otherwise, it returns a similar name with a digest of the
// id, so that different ids have different names.
func (f Form) validName(id string) string {
	suffix := strings.ToLower(f.Suffix)
	name := escapeID(id)
	// Ids without dots and short names of operators need more labels.
	for strings.Count(withSuffix(name, suffix), ".")+1 < minNameLabels {
		suffix = strings.TrimPrefix(suffix+".admission", ".")
	}
	// Different ids can have the same legible form, so every change of the name needs the digest.
	if legible := legibleName(name); legible != name || len(name) > maxNameLength-len(suffix)-1 {
		digest := sha256.Sum256([]byte(id))
		mark := hex.EncodeToString(digest[:4])
		// The two bytes are for the dash and the dot.
		most := max(maxNameLength-len(suffix)-len(mark)-2, 0)
		legible = strings.TrimRight(legible[:min(len(legible), most)], ".-")
		name = strings.TrimPrefix(legible+"-"+mark, "-")
	}
	return withSuffix(name, suffix)
}

// legibleName removes the characters that the API server rejects. It leaves lower-case ASCII letters, digits, dots, and
// dashes within labels, and no empty labels.
func legibleName(name string) string {
	name = strings.Map(func(char rune) rune {
		if char < unicode.MaxASCII {
			return unicode.ToLower(char)
		}
		return -1
	}, name)
	var labels []string
	for label := range strings.SplitSeq(name, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	return strings.Join(labels, ".")
}
