package vectors

import (
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
)

// Run plays every case of testdata/vectors/<family>.json, and of the files of
// the same name in the folders beside it, as a subtest named as the case. Inputs
// are decoded as with [Read], so a field that a struct Input does not have fails
// the case; who takes [Fields] asks [Known] for the same.
//
// A case that deviates from Kopf, with no result for that, is skipped by its
// marks; nothing else is. A panic fails its case alone.
func Run[Input any](t *testing.T, family string, play func(t *testing.T, in Input, want Expected)) {
	t.Helper()
	RunFile(t, filepath.Join("testdata", "vectors", family+".json"), play)
}

// RunFile is [Run] for files that stand beside another package. The name of
// each file, without ".json", must be the family that it claims to be.
func RunFile[Input any](t *testing.T, path string, play func(t *testing.T, in Input, want Expected)) {
	t.Helper()
	more, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*", filepath.Base(path)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append([]string{path}, more...) {
		cases, err := Read[Input](file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) { playCase(t, file, c, play) })
		}
	}
}

func playCase[Input any](t *testing.T, file string, c Case[Input], play func(t *testing.T, in Input, want Expected)) {
	if c.Skipped() {
		t.Skipf("deviates: %v", c.Deviations)
	}
	family := strings.TrimSuffix(filepath.Base(file), ".json")
	if c.LoadError != nil {
		t.Fatalf("the case of the family %q cannot be played: %v", family, c.LoadError)
	}
	defer enter(t, family, c.Input, c.Want.Value)()
	defer func() { failOnPanic(t, recover()) }()
	play(t, c.Input, c.Want)
}

// Bubble is [synctest.Test] for a case: what panics in it, or waits for ever,
// fails this case alone.
func Bubble(t *testing.T, play func(t *testing.T)) {
	t.Helper()
	defer func() { failOnPanic(t, recover()) }()
	synctest.Test(t, func(t *testing.T) {
		defer func() { failOnPanic(t, recover()) }()
		play(t)
	})
}

// failOnPanic fails the test if a panic was caught.
func failOnPanic(t *testing.T, caught any) {
	t.Helper()
	if caught != nil {
		t.Errorf("panic: %v\n%s", caught, debug.Stack())
	}
}
