// Command reachable prints "yes" if a URL answers soon, else "no" and why.
//
//	reachable [-timeout 5s] URL
//
// The vulnerability check asks it before its tool is built, so that a machine
// without access skips the check at once. Both answers are successes: the exit
// code is for errors of the question itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	timeout := flag.Duration("timeout", 5*time.Second, "how long to wait for the answer")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: reachable [-timeout 5s] URL")
		os.Exit(2)
	}
	if err := reach(context.Background(), flag.Arg(0), *timeout); err != nil {
		fmt.Println("no:", err)
		return
	}
	fmt.Println("yes")
}

// reach returns why the URL cannot be used, or nil. Files (the scheme "file") are not checked.
func reach(ctx context.Context, url string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	if request.URL.Scheme == "file" {
		return nil
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	_ = answer.Body.Close() // a HEAD request has no body to lose
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: answered %s", url, answer.Status)
	}
	return nil
}
