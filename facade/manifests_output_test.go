package kopf_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// filesBelow returns the files of a folder.
func filesBelow(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(folder, path)
			files = append(files, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// TestFormerManifestsAreRemoved shows that a folder has the files of the last run and those of the user.
func TestFormerManifestsAreRemoved(t *testing.T) {
	withoutCluster(t)
	folder, elsewhere, full := t.TempDir(), t.TempDir(), serve(t, widgetsOnly())
	with := printing(kopf.AdmissionSettings{Service: "test-system/webhook", CertificateDir: "/certificate"})
	without := kopf.New("test.example.org", kopf.Settings{AddToScheme: runtime.SchemeBuilder{addWidgets}})
	kopf.For(without, &Widget{}).OnCreate("fn", succeed)
	write := func(op *kopf.Operator, into string, args ...string) {
		t.Helper()
		args = append([]string{"manifests", "-A", "--kubeconfig", full, "--output", into}, args...)
		if code, _, errs := execute(t, op, args...); code != 0 {
			t.Fatalf("%v: %s", args, errs)
		}
	}
	require := func(reason string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, filesBelow(t, folder)); d != "" {
			t.Errorf("%s (-want, +got):\n%s", reason, d)
		}
	}
	write(with, elsewhere)
	write(with, folder)
	require("all parts are written", "deployment.yaml", "namespace.yaml", "rbac.yaml", "webhooks.yaml")
	// The user's files have the names of generated ones, or are links to some.
	if err := os.WriteFile(filepath.Join(folder, "monitoring.yaml"), []byte("kind: PodMonitor\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(elsewhere, "rbac.yaml")
	if err := os.Symlink(link, filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	write(without, folder, "--only", "rbac")
	require("a run for one part leaves the others", "deployment.yaml", "link.yaml", "monitoring.yaml", "namespace.yaml",
		"rbac.yaml", "webhooks.yaml")
	write(without, folder)
	require("without admission handlers, the file of the webhooks is removed, and files of the user stay",
		"deployment.yaml", "link.yaml", "monitoring.yaml", "namespace.yaml", "rbac.yaml")
	write(without, folder, "--format", "helm")
	require("another format replaces the files", "Chart.yaml", "link.yaml", "monitoring.yaml",
		"templates/NOTES.txt", "templates/deployment.yaml", "templates/rbac.yaml", "values.yaml")
}
