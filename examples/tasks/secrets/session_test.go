package main

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestSession runs the commands of session.txt, which the page of the program shows.
func TestSession(t *testing.T) {
	session.Play(t, func() *kopf.Operator { return newOperator([]byte("a key of thirty-two random bytes")) })
}
