package quickstart_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// devcluster is the module of the development cluster.
const devcluster = "facade/facadetest/devcluster"

// TestQuickStart runs the commands of the quick start as the README has them, and compares the log with the README.
func TestQuickStart(t *testing.T) {
	_, section, _ := strings.Cut(readFile(t, "README.md"), "\n## Quick start\n")
	section, _, _ = strings.Cut(section, "\nThe same with [a type of your own]")
	blocks := documents.Blocks(section)
	var kinds []string
	for _, b := range blocks {
		kinds = append(kinds, b.Language)
	}
	if want := []string{"sh", "go", "sh", "sh", "", ""}; !slices.Equal(kinds, want) {
		t.Fatalf("the quick start has blocks of %q, want %q: adapt this test", kinds, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	r := newReader(t, "", devcluster)
	r.run(ctx, blocks[0].Text)
	r.write("main.go", blocks[1].Text)
	begun := time.Now()
	cluster := r.serve(ctx, strings.TrimSpace(blocks[2].Text), "")
	t.Logf("%.1f s until the operator has started", time.Since(begun).Seconds())
	want := strings.Split(strings.TrimSpace(blocks[4].Text), "\n")
	commands := strings.Split(strings.TrimSpace(blocks[3].Text), "\n")
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
	r.requireLines(blocks[5].Text, explained)
	cluster.stop()
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
