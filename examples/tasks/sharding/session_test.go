package main

import (
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
)

// TestSession runs the commands of session.txt on one replica.
func TestSession(t *testing.T) { session.Play(t, newOperator) }
