package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// commandTimeout is long enough for a machine under load.
const commandTimeout = 2 * time.Minute

// command is one call of a program, and a pattern of its output.
type command struct {
	name, line, want string
	// mustFail is set if the program must report an error.
	mustFail bool
	// skipReason is the reason to skip the command on kube-apiserver alone, which has no controllers and nodes.
	skipReason string
	// editor is the program that changes the file of "edit".
	editor string
	// isShownByKubectl is set if kubectl shows the result instead of the program of the table.
	isShownByKubectl bool
}

const noControllers = "kube-apiserver runs without controllers here"

// play runs the commands in order: each relies on the previous ones.
func play(t *testing.T, program string, c cluster, commands []command) {
	t.Helper()
	for _, one := range commands {
		if one.skipReason != "" && c.development == nil {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			program := program
			if one.isShownByKubectl {
				program = assetsKubectl(t)
			}
			out, err := run(t, program, c, one.editor, strings.Fields(one.line)...)
			if (err != nil) != one.mustFail {
				t.Errorf("%s: got the error %v, want an error: %t\n%s", one.line, err, one.mustFail, out)
			}
			if !regexp.MustCompile(one.want).MatchString(out) {
				t.Errorf("%s: got\n%swant a match of %s", one.line, out, one.want)
			}
		})
	}
}

// run returns the whole output of a program.
func run(t *testing.T, program string, c cluster, editor string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, arguments...)
	cmd.Env = environment(t, c, "EDITOR="+editor)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// environment returns the environment of a client's process. Its home is empty, so that settings of the user have no
// effect.
func environment(t *testing.T, c cluster, more ...string) []string {
	t.Helper()
	return append(append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+t.TempDir()), more...)
}

func assetsKubectl(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run `make test-envtest`, or `make assets` for the folder to set it to")
	}
	return filepath.Join(folder, "kubectl")
}

// build builds a program of a module below testdata, and returns its path. The program stays in the user's cache, so
// that later builds are fast.
func build(t *testing.T, module, modfile, target, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "kopf-runtime", "clients", name)
	arguments := []string{"-modfile=" + modfile, "-o", program}
	if flags := versionFlags(t, module, modfile); flags != "" {
		arguments = append(arguments, "-ldflags="+flags)
	}
	began := time.Now()
	goCommand(t, module, append(append([]string{"build"}, arguments...), target)...)
	t.Logf("built %s in %s", name, time.Since(began).Round(time.Second))
	return program
}

// goCommand runs the Go command in a module below testdata with its go.mod.
func goCommand(t *testing.T, module string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", arguments...)
	cmd.Dir, cmd.Env = filepath.Join("testdata", module), append(os.Environ(), "GOWORK=off")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, failure.String())
	}
	return strings.TrimSpace(string(out))
}
