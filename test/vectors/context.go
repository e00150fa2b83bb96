package vectors

import (
	"fmt"
	"os"

	"sigs.k8s.io/json"
)

// Context is what all cases of a file share, besides their inputs. It is nil if there is nothing.
func Context(path string) (Fields, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the vectors: %w", err)
	}
	var file struct {
		Context map[string]any `json:"context"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &file); err != nil {
		return nil, fmt.Errorf("decoding the vectors %s: %w", path, err)
	}
	return file.Context, nil
}
