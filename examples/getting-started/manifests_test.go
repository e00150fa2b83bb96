package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestManifests shows that the files in the folder deploy are the output of the command manifests.
func TestManifests(t *testing.T) {
	folder := t.TempDir()
	command := newOperator().Command()
	command.SetArgs(strings.Fields("manifests --crds crd.yaml --format kustomize --output " + folder))
	command.SetErr(&strings.Builder{}) // it has a hint about the image
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("deploy")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join("deploy", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if d := cmp.Diff(string(want), string(got)); d != "" || err != nil {
			t.Errorf("deploy/%s (-want, +printed): %v\n%s", file.Name(), err, d)
		}
	}
}
