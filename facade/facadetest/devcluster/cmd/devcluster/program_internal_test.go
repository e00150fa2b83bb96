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

// endLater plays a program that gets signals. A parent starts a stubborn child and ignores signals, as "go run" does. A
// stubborn program takes some time to end, and prints a line if it gets a second signal.
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

// TestSignalIsForwardedOnce shows that the program and its own children get a signal once, and that the cluster waits
// for them.
func TestSignalIsForwardedOnce(t *testing.T) {
	for _, role := range []string{"stubborn", "parent"} {
		t.Run(role, func(t *testing.T) {
			t.Setenv(operatorRole, role)
			out := newTranscript("ready")
			go func() {
				<-out.textFound
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			}()
			dump := filepath.Join(t.TempDir(), "dump.yaml")
			c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
			code, err := c.runCommand([]string{"--save", dump, "--", os.Args[0]})
			if text := out.String(); !strings.Contains(text, "clean\n") || strings.Contains(text, "second") {
				t.Errorf("the program must clean up after a single signal:\n%s", text)
			}
			if role == "stubborn" && (code != 3 || err != nil) {
				t.Errorf("the command must end with the code 3 of the program, got %d, %v", code, err)
			}
			if _, err := os.Stat(dump); err != nil {
				t.Errorf("the cluster must be saved: %v", err)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Setenv(operatorRole, "failing")
	out := newTranscript("never")
	c := command{stdin: strings.NewReader(""), stdout: out, stderr: out}
	if code, err := c.runCommand([]string{"--", os.Args[0]}); code != 7 || err != nil {
		t.Errorf("want the code 7 of the program, got %d, %v", code, err)
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
		<-out.textFound
		_ = os.RemoveAll(folder)
		_ = stop.Close()
	}()
	c = command{stdin: input, stdout: out, stderr: out}
	code, err := c.runCommand([]string{"--save", filepath.Join(folder, "dump.yaml"), "--", os.Args[0]})
	if code == 0 || err == nil {
		t.Errorf("a failed save must be an error with a code, got %d, %v", code, err)
	}
}
