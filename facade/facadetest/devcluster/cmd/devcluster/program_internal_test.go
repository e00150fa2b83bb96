package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endLater reports the signals that it gets: a parent starts a program of the other role, and ignores signals as "go
// run" does; a stubborn program takes its time to end, and fails if it gets a second signal.
func endLater(role string) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if role == "parent" {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), operatorRole+"=stubborn")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		return child.Run()
	}
	fmt.Println("ready")
	<-signals
	fmt.Println("cleaning up")
	select {
	case <-signals:
		fmt.Println("a second signal")
	case <-time.After(300 * time.Millisecond): // long enough for a second signal
		fmt.Println("clean")
	}
	os.Exit(3)
	return nil
}

// After a signal, the program and its own children get it once, and the cluster waits for them.
func TestSignalIsForwardedOnce(t *testing.T) {
	for _, role := range []string{"stubborn", "parent"} {
		t.Run(role, func(t *testing.T) {
			t.Setenv(operatorRole, role)
			out := newTranscript("ready")
			go func() {
				<-out.seen
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}()
			dump := filepath.Join(t.TempDir(), "dump.yaml")
			c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
			code, err := c.run([]string{"--save", dump, "--", os.Args[0]})
			if text := out.String(); !strings.Contains(text, "clean\n") || strings.Contains(text, "second") {
				t.Errorf("the program was not left to clean up:\n%s", text)
			}
			if role == "stubborn" && (code != 3 || err != nil) {
				t.Errorf("ended with %d, %v, want the code 3 of the program", code, err)
			}
			if _, err := os.Stat(dump); err != nil {
				t.Errorf("nothing was saved: %v", err)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Setenv(operatorRole, "failing")
	out := newTranscript("never")
	c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
	if code, err := c.run([]string{"--", os.Args[0]}); code != 7 || err != nil {
		t.Errorf("got %d, %v, want the code of the program", code, err)
	}
	t.Setenv(operatorRole, "plain")
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	input, stop, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out = newTranscript("starting")
	go func() {
		<-out.seen
		_ = os.RemoveAll(folder)
		_ = stop.Close()
	}()
	c = command{stdin: input, stdout: out, stderr: out}
	code, err := c.run([]string{"--save", filepath.Join(folder, "dump.yaml"), "--", os.Args[0]})
	if code == 0 || err == nil {
		t.Errorf("got %d, %v for a save that fails", code, err)
	}
}
