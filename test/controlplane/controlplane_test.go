package controlplane_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// find returns the programs. It skips the test in the short mode, where building them would take minutes.
func find(t *testing.T) assets.Assets {
	t.Helper()
	if testing.Short() {
		t.Skip("starts kube-apiserver: make test-all runs it")
	}
	found, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{}})
	if err != nil {
		t.Skipf("the programs are not there; run \"go run ./cmd/controlplane assets\" first: %v", err)
	}
	return found
}

func begin(t *testing.T, found assets.Assets, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	o.Progress = t.Output()
	c, err := controlplane.Start(t.Context(), found, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// program writes an executable. A fork of another test must not inherit the open file, because the kernel does not run
// a file that is open for writing.
func program(t *testing.T, path, code string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(code), 0o755); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, found assets.Assets, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), found.Path("kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...,
	)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUsers(t *testing.T) {
	t.Parallel() // control planes know nothing of each other
	found := find(t)
	c := begin(t, found, controlplane.Options{})
	limited, err := c.User("system:serviceaccount:default:reader", "readers")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"create", "clusterrole", "reader", "--verb=get,list", "--resource=configmaps"},
		{"create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=readers"},
		{"create", "configmap", "a", "--from-literal=b=c"},
	} {
		if out, err := kubectl(t, found, c.Kubeconfig(), args...); err != nil {
			t.Fatalf("the admin may do everything: %v: %s", err, out)
		}
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
		fails  bool
	}{
		"forbidden": {
			reason: "a user without a role is forbidden to delete",
			args:   []string{"delete", "configmap", "a"},
			want:   "system:serviceaccount:default:reader",
			fails:  true,
		},
		"allowed": {
			reason: "a user has the rights of the groups",
			args:   []string{"get", "configmap", "a", "-o", "jsonpath={.data.b}"},
			want:   "c",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := kubectl(t, found, limited, tc.args...)
			if (err != nil) != tc.fails || !strings.Contains(out, tc.want) {
				t.Errorf("%s: want %q, got %q, %v", tc.reason, tc.want, out, err)
			}
		})
	}
}

func TestAuditLog(t *testing.T) {
	t.Parallel()
	found := find(t)
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	c := begin(t, found, controlplane.Options{AuditLog: log, LogDir: t.TempDir()})
	if out, err := kubectl(t, found, c.Kubeconfig(), "create", "configmap", "seen", "--from-literal=b=c"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	creations := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var event struct {
			Verb          string
			User          struct{ Username string }
			ObjectRef     struct{ Resource, Name string }
			RequestObject struct{ Data map[string]string }
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("a line of the audit log: %v", err)
		}
		if event.User.Username != "admin" {
			t.Errorf("the log is about users, not about %s", event.User.Username)
		}
		if event.Verb == "create" && event.ObjectRef.Name == "seen" && event.RequestObject.Data["b"] == "c" {
			creations++
		}
	}
	if creations != 1 {
		t.Errorf("the creation was logged %d times with its body, want once", creations)
	}
}

func TestServerLost(t *testing.T) {
	t.Parallel()
	found := find(t)
	// An etcd that ends when a file appears stands for one that crashes.
	dir, sign := t.TempDir(), filepath.Join(t.TempDir(), "crash")
	for _, name := range []string{"kube-apiserver", "kubectl"} {
		if err := os.Symlink(found.Path(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	crashing := "#!/bin/sh\nmkfifo '" + sign + "'\n'" + found.Path("etcd") + "' \"$@\" &\nread line <'" + sign +
		"'\necho bad block\nexit 5\n"
	program(t, filepath.Join(dir, "etcd"), crashing)
	c := begin(t, assets.Assets{Dir: dir}, controlplane.Options{})
	if err := os.WriteFile(sign, []byte("now\n"), 0); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "bad block") {
		t.Errorf("who uses a control plane learns why it broke: got %v", err)
	}
	kubeconfig := c.Kubeconfig()
	if err := errors.Join(c.Stop(), c.Stop()); err != nil {
		t.Errorf("a broken control plane can be stopped, twice: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is gone: %v", err)
	}
}

func TestControllerManager(t *testing.T) {
	found, err := assets.Resolve(
		t.Context(), assets.Options{Extra: []string{assets.ControllerManager}, Sources: []assets.Source{}},
	)
	if err != nil {
		t.Skipf(
			"the program is not there; run \"go run ./cmd/controlplane assets --controller-manager\" first: %v", err,
		)
	}
	c := begin(t, found, controlplane.Options{ControllerManager: true})
	for _, args := range [][]string{
		{"create", "namespace", "short-lived"},
		{"create", "configmap", "inside", "-n", "short-lived"},
		{"delete", "namespace", "short-lived", "--wait", "--timeout=1m"},
	} {
		if out, err := kubectl(t, found, c.Kubeconfig(), args...); err != nil {
			t.Fatalf("a deleted namespace is removed with its objects: %v: %s", err, out)
		}
	}
}
