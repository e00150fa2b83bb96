package storms

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Count returns the environment variable STORMS, which `make explore NAME=storms` sets. Without it, it returns the
// number for short tests, or the one for full tests. A value that is not a number fails the test.
func Count(t *testing.T, short, full uint64) uint64 {
	t.Helper()
	if wanted := os.Getenv("STORMS"); wanted != "" {
		return parse(t, "STORMS", wanted)
	}
	if testing.Short() {
		return short
	}
	return full
}

// Seed returns the environment variable SEED, or a random number without it. A value that is not a number fails the
// test.
func Seed(t *testing.T) uint64 {
	t.Helper()
	if wanted := os.Getenv("SEED"); wanted != "" {
		return parse(t, "SEED", wanted)
	}
	return rand.Uint64()
}

func parse(t *testing.T, name, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s must be a number: %v", name, err)
	}
	return n
}
