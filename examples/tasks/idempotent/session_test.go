package main

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestSession runs the commands of session.txt, which the page of the program shows.
func TestSession(t *testing.T) {
	service := newMemoryHosting() // outlives the operator
	session.Play(t, func() *kopf.Operator { return newOperator(service) })
	if got := service.content(); len(got) != 3 || got[0] != "0 files, servers []" {
		t.Errorf("two bills must be sent, and nothing be left: got %q", got)
	}
}
