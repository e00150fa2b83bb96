package quickstart_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long the quick start may take: the first time, the packages of the module are compiled.
const patience = 20 * time.Minute

var block = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// TestQuickStart runs the commands of the quick start as the README has them, and compares the log with the README.
func TestQuickStart(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS must name the folder of kubectl: run \"make test-envtest\", which sets it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Quick start\n")
	section, _, _ = strings.Cut(section, "\nThe same with [a type of your own]")
	blocks := block.FindAllStringSubmatch(section, -1)
	var kinds []string
	for _, b := range blocks {
		kinds = append(kinds, b[1])
	}
	if want := []string{"sh", "go", "sh", "sh", "", ""}; !slices.Equal(kinds, want) {
		t.Fatalf("the quick start has blocks of %q, want %q: adapt this test", kinds, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	debug := freeAddress(t)
	r := reader{t: t, folder: t.TempDir(), env: append(os.Environ(),
		"GOPROXY="+serveModules(t, root, "", "facade/facadetest/devcluster")+","+goEnv(t, "GOPROXY"),
		"GONOSUMDB="+module+","+module+"/*", "GOFLAGS=-modcacherw", "GOWORK=off",
		"KOPF_RUN_DEBUG_BIND_ADDRESS="+debug, "KOPF_EXPLAIN_ADDRESS="+debug, // other operators run on this machine, too
		"GODEBUG=goindex=0", // the index of a module is kept by its version, which is always the same here
		"PATH="+assets+":"+os.Getenv("PATH"),
	)}
	forgetModules(t)
	r.run(ctx, blocks[0][2])
	if err := os.WriteFile(filepath.Join(r.folder, "main.go"), []byte(blocks[1][2]), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	cluster := r.start(ctx, blocks[2][2])
	started := cluster.await("KUBECONFIG=")
	_, kubeconfig, _ := strings.Cut(started, "KUBECONFIG=")
	cluster.await("Operator started")
	t.Logf("%.1f s until the operator has started", time.Since(begun).Seconds())
	r.env = append(r.env, "KUBECONFIG="+strings.TrimSpace(kubeconfig))
	want := strings.Split(strings.TrimSpace(blocks[4][2]), "\n")
	commands := strings.Split(strings.TrimSpace(blocks[3][2]), "\n")
	if len(want) != len(commands) {
		t.Fatalf("%d commands must lead to as many lines, got %q", len(commands), want)
	}
	for i, command := range commands {
		r.run(ctx, command)
		_, message, _ := strings.Cut(want[i], "] [default/greeting] ")
		word, _, _ := strings.Cut(message, " ")
		line := cluster.await("] [default/greeting] " + word)
		if withoutTime(line) != withoutTime(want[i]) {
			t.Errorf("%s must log the line of the README:\n%s\ngot:\n%s", command, want[i], line)
		}
	}
	explained := r.run(ctx, "go run . explain configmap default/greeting")
	for line := range strings.Lines(blocks[5][2]) {
		if !strings.Contains(withoutTime(explained), strings.TrimSpace(withoutTime(line))) {
			t.Errorf("explain must print %q, got:\n%s", strings.TrimSpace(line), explained)
		}
	}
	cluster.stop()
}

var (
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3}`)
	spaces = regexp.MustCompile(`\s+`)
)

// withoutTime replaces times and runs of spaces.
func withoutTime(text string) string {
	return spaces.ReplaceAllString(moment.ReplaceAllString(text, "TIME"), " ")
}

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}

// forgetModules removes the working tree of an earlier run from the module cache.
func forgetModules(t *testing.T) {
	t.Helper()
	cache := goEnv(t, "GOMODCACHE")
	for _, folder := range []string{
		filepath.Join(cache, "cache", "download", "github.com", "kopf-runtime"),
		filepath.Join(cache, "github.com", "kopf-runtime"),
	} {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
}

// reader is a reader of the README, in an empty folder.
type reader struct {
	t      *testing.T
	folder string
	env    []string
}

func (r *reader) command(ctx context.Context, lines string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-ec", lines)
	cmd.Dir, cmd.Env = r.folder, r.env
	return cmd
}

// run runs lines of a shell and returns their output.
func (r *reader) run(ctx context.Context, lines string) string {
	r.t.Helper()
	begun := time.Now()
	out, err := r.command(ctx, lines).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	r.t.Logf("%.1f s for %s", time.Since(begun).Seconds(), strings.TrimSpace(lines))
	return string(out)
}

// process is a command that runs beside the others.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	seen  bytes.Buffer
}

// start starts lines of a shell.
func (r *reader) start(ctx context.Context, lines string) *process {
	r.t.Helper()
	p := &process{t: r.t, cmd: r.command(ctx, lines)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = p.cmd.Cancel() })
	go func() { _ = in.CloseWithError(p.cmd.Wait()) }()
	return p
}

// await returns the next line with the text.
func (p *process) await(text string) string {
	p.t.Helper()
	for p.lines.Scan() {
		line := p.lines.Text()
		p.seen.WriteString(line + "\n")
		if strings.Contains(line, text) {
			return line
		}
	}
	p.t.Fatalf("the process ended before it printed %q: %v\n%s", text, p.lines.Err(), p.seen.String())
	return ""
}

// stop presses Ctrl-C and waits for the end.
func (p *process) stop() {
	p.t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	for p.lines.Scan() {
		p.seen.WriteString(p.lines.Text() + "\n")
	}
}
