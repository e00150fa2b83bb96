package cause

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// These keys mark a stored essence with digests. Kubernetes objects do not have such fields.
const (
	// singleDigestKey is the only key of an essence that is stored as a single digest.
	singleDigestKey = "$digest"
	// digestPathsKey lists the paths under which all values of an essence are digests.
	digestPathsKey = "$digests"
)

// digestLength is the number of stored bytes of a digest. With 96 bits, it is infeasible to find another value with the
// same digest.
const digestLength = 12

// digests makes and recognizes the digests of one object. A digest depends on the uid and the path, so equal values of
// two objects or at two paths have different digests, and a copied digest has no meaning elsewhere.
type digests struct {
	uid  string
	keys [][]byte // the first one makes digests, all of them recognize digests
}

// makeDigest returns the digest of the value at the path, by the newest key.
func (d digests) makeDigest(at diff.Path, value any) (string, error) {
	return d.digestWithKey(d.keys[0], at, value)
}

// matchesValue reports whether the digest belongs to the value at the path, by any of the keys. So a key can be
// replaced without updates of all objects.
func (d digests) matchesValue(digest string, at diff.Path, value any) bool {
	// Both are unknown. They are equal if their digests are.
	if hidden, ok := value.(Hidden); ok {
		return hidden.digest == digest
	}
	for _, key := range d.keys {
		if sum, err := d.digestWithKey(key, at, value); err == nil && hmac.Equal([]byte(sum), []byte(digest)) {
			return true
		}
	}
	return false
}

// digestWithKey returns the digest of the value at the path by one key. It must not change: stored digests depend on
// it.
func (d digests) digestWithKey(key []byte, at diff.Path, value any) (string, error) {
	raw, err := json.Marshal([]any{d.uid, []string(at), canonicalValue(value)})
	if err != nil {
		return "", fmt.Errorf("encoding the value at %q for its digest: %w", at, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(raw)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:digestLength]), nil
}

// canonicalValue returns the value with whole floating-point numbers as integers, so that equal values have equal
// digests, however they were decoded.
func canonicalValue(value any) any {
	switch value := value.(type) {
	case float64:
		if value >= math.MinInt64 && value < -math.MinInt64 && math.Trunc(value) == value {
			return int64(value)
		}
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = canonicalValue(item)
		}
		return list
	case map[string]any:
		mapping := make(map[string]any, len(value))
		for key, inner := range value {
			mapping[key] = canonicalValue(inner)
		}
		return mapping
	case Hidden:
		// Real objects do not contain this form: an essence with a hidden value must not match one without.
		return map[string]any{singleDigestKey: value.digest}
	}
	return value
}

// EssenceFingerprint identifies a stored essence: two essences without a difference have the same fingerprint, and that
// of nil is empty. It does not reveal more of the values than the stored essence does.
func EssenceFingerprint(stored diffbase.Essence) (string, error) {
	if stored == nil {
		return "", nil
	}
	// Encoded maps have sorted keys, so equal essences have equal texts.
	raw, err := json.Marshal(canonicalValue(storage.WithoutNulls(stored)))
	if err != nil {
		return "", fmt.Errorf("encoding the last-handled configuration for its fingerprint: %w", err)
	}
	sum := sha256.Sum256(raw)
	return base64.RawURLEncoding.EncodeToString(sum[:digestLength]), nil
}

// ChangeFingerprint identifies the change of a cause: it differs if the reason or the present essence differs. It is
// only meaningful in this process.
func (c *Cause) ChangeFingerprint() string {
	// New may have values that cannot be encoded. The error identifies them well enough.
	text, err := EssenceFingerprint(c.New)
	if err != nil {
		text = err.Error()
	}
	return string(c.Reason) + " " + text
}
