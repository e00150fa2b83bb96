package devcluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/devcluster"
)

func clientOf(t *testing.T, cluster *devcluster.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	first, end := startCluster(t, devcluster.Options{Save: dump})
	client := clientOf(t, first)
	const secret = "dG9wLXNlY3JldA=="
	made, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + secret + `"}}`,
		}},
		Data: map[string][]byte{"password": []byte("top-secret")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end()
	data, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), secret) || strings.Contains(string(data), "top-secret") {
		t.Errorf("the dump must not have the value of a Secret:\n%s", data)
	}
	if info, err := os.Stat(dump); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the dump has mode %v (%v), want 0600", info.Mode().Perm(), err)
	}
	second, _ := startCluster(t, devcluster.Options{Load: []string{dump}})
	loaded, err := clientOf(t, second).CoreV1().Secrets("default").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if loaded.UID != made.UID || loaded.ResourceVersion != made.ResourceVersion {
		t.Errorf("the Secret has uid %s and version %s, want %s and %s", loaded.UID, loaded.ResourceVersion, made.UID,
			made.ResourceVersion)
	}
	other, err := clientOf(t, second).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "new"},
	}, metav1.CreateOptions{})
	if err != nil || other.UID == made.UID {
		t.Errorf("a new object must have a new uid, got %s (%v)", other.UID, err)
	}
}

func TestSaveWithSecrets(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	cluster, end := startCluster(t, devcluster.Options{Save: dump, WithSecrets: true})
	_, err := clientOf(t, cluster).CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "top-secret"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end()
	if data, err := os.ReadFile(dump); err != nil || !strings.Contains(string(data), "dG9wLXNlY3JldA==") {
		t.Errorf("with WithSecrets, the dump must have the value: %v\n%s", err, data)
	}
}

func TestLoadFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, content, want string }{
		"UnknownKind": {"a kind without a definition is an error",
			"apiVersion: example.org/v1\nkind: Ghost\nmetadata: {name: a}\n",
			"Ghost of example.org/v1 is not served"},
		"NoName": {"an object without a name is an error",
			"apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "no name"},
		"BadVersion": {"a resourceVersion that is not a number is an error",
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, uid: u, resourceVersion: x}\n", "invalid"},
		"NotYAML": {"a file that is not YAML is an error", "a: b: c\n", "yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dump.yaml")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := devcluster.Start(ctx, devcluster.Options{Load: []string{path}})
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tc.want)) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// savingProcessVariable is the environment variable that makes this test program save continuously.
const savingProcessVariable = "DEVCLUSTER_SAVING_PROCESS"

// TestKilledSave shows that a save that is killed halfway leaves the former file intact.
func TestKilledSave(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	if dump := os.Getenv(savingProcessVariable); dump != "" {
		saveForever(t, dump)
	}
	dump := filepath.Join(t.TempDir(), "dump.yaml")
	for round := range 6 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledSave$")
		cmd.Env = append(os.Environ(), savingProcessVariable+"="+dump)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitForSave(t, dump)
		time.Sleep(time.Duration(round) * 17 * time.Millisecond) // varies the moment of the kill
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		cluster, end := startCluster(t, devcluster.Options{Load: []string{dump}})
		list, err := clientOf(t, cluster).CoreV1().ConfigMaps("full").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != savedObjects {
			t.Fatalf("round %d: the dump has %d objects (%v), want %d", round, len(list.Items), err, savedObjects)
		}
		end()
	}
}

const savedObjects = 300

func waitForSave(t *testing.T, dump string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(dump); err == nil {
			return
		}
	}
	t.Fatal("the process must save within a minute")
}

func saveForever(t *testing.T, dump string) {
	source := filepath.Join(t.TempDir(), "source.yaml")
	var text strings.Builder
	for i := range savedObjects {
		fmt.Fprintf(&text,
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: full}\ndata: {a: %s}\n---\n",
			i, strings.Repeat("x", 1000))
	}
	if err := os.WriteFile(source, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		cluster, err := devcluster.Start(ctx, devcluster.Options{Load: []string{source}, Save: dump})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := cluster.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
