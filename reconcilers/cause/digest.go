package cause

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// digestKey stands alone in what is stored instead of an essence that does not fit onto its object.
const digestKey = "$sha256"

// Digest is the stand-in for an essence that is too large to be stored: a change can be seen by it, but not what it
// was.
func Digest(essence diffbase.Essence) (diffbase.Essence, error) {
	sum, err := sumOf(essence)
	if err != nil {
		return nil, err
	}
	return diffbase.Essence{digestKey: sum}, nil
}

// Recall gives the last-handled essence from what was stored. A stand-in is the present essence if they agree; else
// it is an empty one, so that the change is seen, as the addition of all that there is.
func Recall(stored, present diffbase.Essence) diffbase.Essence {
	digest, ok := stored[digestKey].(string)
	if !ok || len(stored) != 1 {
		return stored
	}
	if sum, err := sumOf(present); err == nil && sum == digest {
		return present
	}
	return diffbase.Essence{}
}

func sumOf(essence diffbase.Essence) (string, error) {
	raw, err := json.Marshal(essence)
	if err != nil {
		return "", fmt.Errorf("encoding the essence: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
