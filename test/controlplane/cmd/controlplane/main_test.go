package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

var command string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "controlplane-command-*")
	if err != nil {
		panic(err)
	}
	command = filepath.Join(dir, "controlplane")
	if out, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // the system clears its folder for temporary files as well
	os.Exit(code)
}

func TestUsage(t *testing.T) {
	cases := map[string]struct {
		reason     string
		args       []string
		wantCode   int
		wantStdout string
		wantStderr string
	}{
		"nothing": {reason: "no command is a question", wantCode: 2, wantStderr: "controlplane assets"},
		"unknown": {
			reason: "an error says where to look", args: []string{"stop"}, wantCode: 1, wantStderr: "--help",
		},
		"unknown flag": {
			reason: "a wrong flag shows the right ones", args: []string{"start", "-x"}, wantCode: 2,
			wantStderr: "-audit-log",
		},
		"stray argument": {
			reason: "an unexpected argument is an error", args: []string{"assets",
				"now"}, wantCode: 1, wantStderr: `"now"`,
		},
		"no command": {
			reason: "the error contains an example", args: []string{"run"}, wantCode: 1, wantStderr: "run -- kubectl",
		},
		"help": {
			reason: "help is printed to standard output", args: []string{"--help"},
			wantStdout: "KUBEBUILDER_ASSETS=$("},
		"command's help": {
			reason: "each command prints its own help", args: []string{"run",
				"--help"}, wantStderr: "exit code is passed on",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), command, tc.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run() // its code is looked at
			if got := cmd.ProcessState.ExitCode(); got != tc.wantCode {
				t.Errorf("%s: exit code %d, want %d", tc.reason, got, tc.wantCode)
			}
			if !strings.Contains(stdout.String(), tc.wantStdout) || !strings.Contains(stderr.String(), tc.wantStderr) {
				t.Errorf("%s: got %q on stdout and %q on stderr", tc.reason, stdout.String(), stderr.String())
			}
		})
	}
}

func TestAssetsPrintsFolderAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), command, "assets")
	cmd.Env = append(os.Environ(), assets.AssetsVariable+"="+dir)
	out, err := cmd.Output()
	if err != nil || string(out) != dir+"\n" {
		t.Errorf("the answer goes into a variable, so it is the folder alone: got %q, %v", out, err)
	}
}

// TestEnds needs the real programs: only they show that nothing is left.
func TestEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("starts kube-apiserver: make test-all runs it")
	}
	if _, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{}}); err != nil {
		t.Skipf("the programs are not there; run \"go run ./cmd/controlplane assets\" first: %v", err)
	}
	cases := map[string]struct {
		reason   string
		args     []string
		signal   os.Signal // none if the program ends by itself
		wantCode int
	}{
		"killed": {
			reason:   "a killed control plane cannot clear up, and is cleared up after",
			args:     []string{"start"},
			signal:   syscall.SIGKILL,
			wantCode: -1,
		},
		"command killed": {
			reason:   "a command does not outlive its control plane",
			args:     []string{"run", "--", "sh", "-c", "echo export KUBECONFIG=$KUBECONFIG; exec sleep 1000"},
			signal:   syscall.SIGKILL,
			wantCode: -1,
		},
		"interrupted": {
			reason: "Ctrl-C is the usual end",
			args:   []string{"start"},
			signal: os.Interrupt,
		},
		"command fails": {
			reason: "the command's exit code is passed on",
			args: []string{
				"run", "--", "sh", "-c", "echo export KUBECONFIG=$KUBECONFIG; kubectl get ns default >&2 && exit 7",
			},
			wantCode: 7,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			cmd := exec.CommandContext(t.Context(), command, tc.args...)
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
			cmd.Stderr = t.Output()
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			kubeconfig := readKubeconfig(t, out)
			if _, err := os.Stat(kubeconfig); err != nil && tc.signal != nil {
				t.Errorf("%s: the printed kubeconfig exists: %v", tc.reason, err)
			}
			if tc.signal != nil {
				if err := cmd.Process.Signal(tc.signal); err != nil {
					t.Fatal(err)
				}
			}
			_, _ = io.Copy(io.Discard, out) // ends when every process that shares the output has ended
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tc.wantCode {
				t.Errorf("%s: exit code %d, want %d", tc.reason, got, tc.wantCode)
			}
			awaitRemoval(t, filepath.Dir(kubeconfig))
		})
	}
}

func readKubeconfig(t *testing.T, out io.Reader) string {
	t.Helper()
	var line []byte
	for one := make([]byte, 1); ; { // not a byte more: the rest is waited for
		if _, err := out.Read(one); err != nil {
			t.Fatalf("reading the first line, after %q: %v", line, err)
		}
		if one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	fields := strings.Fields(strings.TrimPrefix(string(line), "export KUBECONFIG="))
	if len(fields) == 0 {
		t.Fatalf("the first line names no kubeconfig: %q", line)
	}
	return fields[0]
}

func awaitRemoval(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(3 * time.Minute)
	for {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s is still there", dir)
		}
	}
}
