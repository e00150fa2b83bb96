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

// These keys mark a stored essence that has digests. No object of Kubernetes has such fields.
const (
	// wholeKey is the only key of an essence that is stored as a single digest.
	wholeKey = "$digest"
	// legacyKey marks a single digest of a former format, which used no secret.
	legacyKey = "$sha256"
	// sealedKey lists the paths under which all values of an essence are digests.
	sealedKey = "$digests"
)

// digestLength is the number of bytes kept of a digest: enough to make finding another value of the same digest
// infeasible.
const digestLength = 12

// digests makes and recognises the digests of one object. A digest depends on the uid and the path, so that equal
// values of two objects, or at two paths, have different digests.
type digests struct {
	uid  string
	keys [][]byte // the first one makes digests, all of them recognise digests
}

func (d digests) of(at diff.Path, value any) (string, error) { return d.by(d.keys[0], at, value) }

// match tells whether the digest is that of the value at the path.
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

// canonical gives the value with whole floating-point numbers as integers, so that equal values have equal digests.
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
		// This equals no value of an object: an essence with a hidden value must not match one without.
		return map[string]any{wholeKey: value.digest}
	}
	return value
}

// Fingerprint identifies a stored essence: essences without a difference have the same fingerprint, and nil has an
// empty one. It reveals no more of the values than the stored essence does.
func Fingerprint(stored diffbase.Essence) (string, error) {
	if stored == nil {
		return "", nil
	}
	raw, err := json.Marshal(canonical(withoutNulls(stored)))
	if err != nil {
		return "", fmt.Errorf("encoding the last-handled configuration for its fingerprint: %w", err)
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:digestLength]), nil
}

// Fingerprint identifies the change: that it is another one, or that the object has become another one since. It is for
// this process alone.
func (c *Cause) Fingerprint() string {
	text, err := Fingerprint(c.New)
	if err != nil {
		text = err.Error()
	}
	return string(c.Reason) + " " + text
}

// withoutNulls gives the mapping without keys whose value is null, at any depth: they mean the same as absent ones.
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
