package configurations

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

const (
	// longestName is that of the names of entries.
	longestName = 253
	// fewestLabels is how many parts with dots between them the API server demands of the name of an entry.
	fewestLabels = 3
)

// name is that of an entry that is named after an id, or something alike.
func (f Form) name(id string) string {
	if f.AsKopf {
		return suffixed(escaped(id), f.Suffix)
	}
	return f.validName(id)
}

func suffixed(name, suffix string) string {
	if suffix == "" {
		return name
	}
	return name + "." + suffix
}

// escaped is the id in a name, as Kopf has it. The case of letters is kept, and so are letters of all scripts,
// which the API server refuses.
func escaped(id string) string {
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
			name.WriteString(hex.EncodeToString([]byte(string(char))))
		}
	}
	return name.String()
}

// validName is Kopf's name, if the API server takes it. Otherwise, it is one as similar as possible, with a digest of
// the id, so that no two of them are the same.
func (f Form) validName(id string) string {
	suffix := strings.ToLower(f.Suffix)
	name := escaped(id)
	for strings.Count(suffixed(name, suffix), ".")+1 < fewestLabels {
		suffix = strings.TrimPrefix(suffix+".admission", ".")
	}
	if legible := legible(name); legible != name || len(name) > longestName-len(suffix)-1 {
		digest := sha256.Sum256([]byte(id))
		mark := hex.EncodeToString(digest[:4])
		most := max(longestName-len(suffix)-len(mark)-2, 0)
		legible = strings.TrimRight(legible[:min(len(legible), most)], ".-")
		name = strings.TrimPrefix(legible+"-"+mark, "-")
	}
	return suffixed(name, suffix)
}

// legible leaves of a name what the API server takes: small letters of ASCII, digits, dots, and dashes inside of what
// is between the dots, which is never empty.
func legible(name string) string {
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

// at is where the server is, for one path on it. What is given stays as it is.
func at(
	client admissionregistrationv1.WebhookClientConfig, below string,
) admissionregistrationv1.WebhookClientConfig {
	path := quoted(below)
	if client.URL != nil {
		client.URL = ptr.To(strings.TrimRight(*client.URL, "/") + "/" + path)
	}
	if client.Service != nil {
		service := *client.Service
		service.Path = ptr.To(ptr.Deref(service.Path, "") + "/" + path)
		client.Service = &service
	}
	return client
}

// quoted is a path as a part of a URL: all but ASCII letters, digits and "_.-~/" by the codes of its bytes.
func quoted(plain string) string {
	const digits = "0123456789ABCDEF"
	var path strings.Builder
	for _, char := range []byte(plain) {
		safe := 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9'
		if safe || strings.IndexByte("_.-~/", char) >= 0 {
			path.WriteByte(char)
			continue
		}
		path.WriteByte('%')
		path.WriteByte(digits[char>>4])
		path.WriteByte(digits[char&15])
	}
	return path.String()
}
