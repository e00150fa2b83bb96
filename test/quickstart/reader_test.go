package quickstart_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	// testTimeout is how long a test may take: the first time, the packages of the module are compiled.
	testTimeout = 40 * time.Minute
	// lineTimeout is how long a process may take to print a line. Some of them are compiled first.
	lineTimeout = 10 * time.Minute
)

// reader follows a page in a folder. The variables and the folder of its shell last from one command to the next.
type reader struct {
	t *testing.T
	// folder is the current one.
	folder string
	env    []string
	// stateFile is a file with the variables of the shell.
	stateFile string
	// addresses replaces the ports and paths of pages by free ones.
	addresses *strings.Replacer
	// processes are the commands that serve until Ctrl-C.
	processes []*process
}

// newReader returns a reader in an empty folder. The Go command finds the working tree as a released version.
func newReader(t *testing.T, released ...string) *reader {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS must name the folder of kubectl: run \"make test-envtest\", which sets it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	debug, programs := freeAddress(t), t.TempDir()
	r := &reader{t: t, folder: t.TempDir(), stateFile: filepath.Join(t.TempDir(), "state"), env: append(os.Environ(),
		"GOPROXY="+serveModules(t, root, released...)+","+goEnv(t, "GOPROXY"),
		"GONOSUMDB="+module+","+module+"/*", "GOFLAGS=-modcacherw", "GOWORK=off",
		"KOPF_RUN_DEBUG_BIND_ADDRESS="+debug, "KOPF_EXPLAIN_ADDRESS="+debug, // other operators run on this machine, too
		"GODEBUG=goindex=0", // the index of a module is kept by its version, which is always the same here
		"REPOSITORY="+root, "GOBIN="+programs, "PPROF_TMPDIR="+t.TempDir(),
		"PATH="+strings.Join([]string{programs, assets, os.Getenv("PATH")}, ":"),
	)}
	_, debugPort, _ := strings.Cut(debug, ":")
	pairs := []string{":8082", ":" + debugPort, "seconds=30", "seconds=1",
		"/tmp/ca.crt", filepath.Join(t.TempDir(), "ca.crt")}
	for _, port := range []string{":8080", ":8081", ":9443"} {
		_, free, _ := strings.Cut(freeAddress(t), ":")
		pairs = append(pairs, port, ":"+free)
	}
	r.addresses = strings.NewReplacer(pairs...)
	forgetModules(t)
	t.Cleanup(func() { r.stop(func(*process) bool { return true }) })
	return r
}

// at returns a reader for a subtest, in a copy of the folder, with the same variables.
func (r *reader) at(t *testing.T) *reader {
	t.Helper()
	other := *r
	other.t, other.processes = t, nil
	other.folder, other.stateFile = t.TempDir(), filepath.Join(t.TempDir(), "state")
	if err := os.CopyFS(other.folder, os.DirFS(r.folder)); err != nil {
		t.Fatal(err)
	}
	// The file is that of the cluster which serves all pages.
	if err := os.RemoveAll(filepath.Join(other.folder, "dev.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	variables, err := os.ReadFile(r.stateFile)
	if err == nil {
		err = os.WriteFile(other.stateFile, variables, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.stop(func(*process) bool { return true }) })
	return &other
}

// export sets a variable of the shell.
func (r *reader) export(name, value string) {
	r.t.Helper()
	file, err := os.OpenFile(r.stateFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "export %s='%s'\n", name, value)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// write writes a file in the current folder.
func (r *reader) write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.folder, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) command(ctx context.Context, lines string) *exec.Cmd {
	script := fmt.Sprintf("if [ -f '%[1]s' ]; then . '%[1]s'; fi\n%s\n", r.stateFile, lines)
	cmd := exec.CommandContext(ctx, "sh", "-ec", script)
	cmd.Dir, cmd.Env = r.folder, r.env
	return cmd
}

// run runs lines of a shell and returns their output. It keeps the folder and the variables that the lines set.
func (r *reader) run(ctx context.Context, lines string) string {
	r.t.Helper()
	begun, place := time.Now(), r.stateFile+".folder"
	keep := fmt.Sprintf("\nexport -p | grep -v PWD= >'%s'\npwd >'%s'", r.stateFile, place)
	out, err := r.command(ctx, lines+keep).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	r.t.Logf("%.1f s for %s", time.Since(begun).Seconds(), strings.TrimSpace(lines))
	folder, err := os.ReadFile(place)
	if err != nil {
		r.t.Fatal(err)
	}
	r.folder = strings.TrimSpace(string(folder))
	return string(out)
}

// stop ends the processes that the function selects.
func (r *reader) stop(isSelected func(p *process) bool) {
	var others []*process
	for _, p := range r.processes {
		if isSelected(p) {
			p.stop()
		} else {
			others = append(others, p)
		}
	}
	r.processes = others
}

var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3}`)
	spaces    = regexp.MustCompile(`\s+`)
)

// withoutTime replaces times and runs of spaces.
func withoutTime(text string) string {
	return spaces.ReplaceAllString(timestamp.ReplaceAllString(text, "TIME"), " ")
}
