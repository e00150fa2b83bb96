package cause

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// The keys of what is stored instead of an essence, or of a part of it. No object of Kubernetes has such fields.
const (
	// wholeKey stands alone, with one digest of an essence of which not even the digests of its values fit.
	wholeKey = "$digest"
	// legacyKey is the same as it was stored once: without any secret in it.
	legacyKey = "$sha256"
	// sealedKey stands beside the rest of the essence, with the list of the paths under which all values are digests.
	sealedKey = "$digests"
)

// digestLength is how many bytes of a digest are kept: enough for nobody to find another value of the same digest.
const digestLength = 12

// digests are those of one object. They tell nobody whether two objects, or two places in one, have the same value.
type digests struct {
	uid  string
	keys [][]byte // the first one makes digests, all of them recognise some
}

func (d digests) of(at diff.Path, value any) (string, error) { return d.by(d.keys[0], at, value) }

// match tells whether the digest is that of the value at that place.
func (d digests) match(digest string, at diff.Path, value any) bool {
	for _, key := range d.keys {
		if sum, err := d.by(key, at, value); err == nil && hmac.Equal([]byte(sum), []byte(digest)) {
			return true
		}
	}
	return false
}

func (d digests) by(key []byte, at diff.Path, value any) (string, error) {
	raw, err := json.Marshal([]any{d.uid, []string(at), canonical(value)})
	if err != nil {
		return "", fmt.Errorf("encoding the value at %q for its digest: %w", at, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(raw)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:digestLength]), nil
}

// canonical is the value with one spelling of every number, so that equal values have equal digests.
func canonical(value any) any {
	switch value := value.(type) {
	case float64:
		if value >= math.MinInt64 && value < -math.MinInt64 && math.Trunc(value) == value {
			return int64(value)
		}
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = canonical(item)
		}
		return list
	case map[string]any:
		mapping := make(map[string]any, len(value))
		for key, inner := range value {
			mapping[key] = canonical(inner)
		}
		return mapping
	case Hidden:
		// It is nobody's value, so that the whole is not taken for a known one.
		return map[string]any{wholeKey: value.digest}
	}
	return value
}

// Fingerprint recognises an essence as it was remembered: those that have no difference have the same one, and nil has
// an empty one. It tells no more of the values than what is remembered tells.
func Fingerprint(stored diffbase.Essence) (string, error) {
	if stored == nil {
		return "", nil
	}
	raw, err := json.Marshal(canonical(withoutNulls(stored)))
	if err != nil {
		return "", fmt.Errorf("encoding what was handled last for its fingerprint: %w", err)
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:digestLength]), nil
}

// withoutNulls is the mapping without the keys that mean no more than if they were absent.
func withoutNulls(mapping map[string]any) map[string]any {
	remaining := make(map[string]any, len(mapping))
	for key, value := range mapping {
		switch value := value.(type) {
		case nil:
		case map[string]any:
			remaining[key] = withoutNulls(value)
		default:
			remaining[key] = value
		}
	}
	return remaining
}
