package vectors

import (
	"path/filepath"
	"testing"
)

// Run plays every case of testdata/vectors/<family>.json as a subtest named as
// the case. Inputs are decoded as with [Read], so a field that a struct Input
// does not have fails the case; who takes [Fields] asks [Known] for the same.
//
// A case that deviates from Kopf, with no result for that, is skipped by its
// marks; nothing else is.
func Run[Input any](t *testing.T, family string, play func(t *testing.T, in Input, want Expected)) {
	t.Helper()
	RunFile(t, filepath.Join("testdata", "vectors", family+".json"), play)
}

// RunFile is [Run] for a file that stands beside another package. The name of
// the file, without ".json", must be the family that it claims to be.
func RunFile[Input any](t *testing.T, path string, play func(t *testing.T, in Input, want Expected)) {
	t.Helper()
	cases, err := Read[Input](path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if c.Skipped() {
				t.Skipf("deviates: %v", c.Deviations)
			}
			if c.Problem != nil {
				t.Fatalf("the case cannot be played: %v", c.Problem)
			}
			play(t, c.Input, c.Want)
		})
	}
}
