package main

import (
	"sync"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/examples/lessons/session"
	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// memoryTable stands for the database.
type memoryTable struct {
	mu   sync.Mutex
	rows map[row]string
}

var _ table = (*memoryTable)(nil)

func (t *memoryTable) Get(uid, key string) (text string, found bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text, found = t.rows[row{uid, key}]
	return text, found, nil
}

func (t *memoryTable) Write(rows map[row]*string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, text := range rows {
		if text == nil {
			delete(t.rows, at)
		} else {
			t.rows[at] = *text
		}
	}
	return nil
}

func (t *memoryTable) Forget(uid string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := range t.rows {
		if at.UID == uid {
			delete(t.rows, at)
		}
	}
	return nil
}

// TestSession runs the commands of session.txt, which the page of the program shows.
func TestSession(t *testing.T) {
	kept := &memoryTable{rows: map[row]string{}} // outlives the operator
	session.Play(t, func() *kopf.Operator { return newOperator(kept) })
	for at := range kept.rows {
		if at.UID != "any" { // the trial of the set-up
			t.Errorf("the row %v is left after the deletion", at)
		}
	}
}
