package cause

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

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
