package main

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
)

// TestSession runs the commands of session.txt, which the tutorial shows. The handlers of volume claims run beside
// those of their owners.
func TestSession(t *testing.T) { session.Play(t, newOperator, "handler=bind", "handler=report") }
