package certificates

import (
	"bytes"
	"context"
	"fmt"
	"os"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// announced is the bundle that was told last.
type announced struct {
	last []byte
	told func(bundle []byte)
}

// review tells the bundle if it is another one by now. One that cannot be read leaves the former one in force.
func (a *announced) review(ctx context.Context, read func() ([]byte, error)) {
	bundle, err := read()
	switch {
	case err != nil:
		logf.FromContext(ctx).Error(err, "Cannot read the CA bundle of webhooks; the former one stays")
	case !bytes.Equal(bundle, a.last):
		a.last = bundle
		a.told(bundle)
	}
}

// readBundle reads a bundle that others write. An empty file may be written just now, and an empty bundle would have
// API servers trust the CAs of their system instead.
func readBundle(path string) ([]byte, error) {
	bundle, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %w", err)
	}
	if len(bundle) == 0 {
		return nil, fmt.Errorf("reading the CA bundle of webhooks: %s is empty", path)
	}
	return bundle, nil
}
