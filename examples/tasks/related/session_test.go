package main

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
)

// TestSession runs the commands of session.txt, which the page of the program shows.
func TestSession(t *testing.T) { session.Play(t, newOperator) }
