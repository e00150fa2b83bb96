package children

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestForgottenParentKeepsItsTurn shows that a second call for a parent waits for the first one, even if Forget was
// called between the two.
func TestForgottenParentKeepsItsTurn(t *testing.T) {
	t.Parallel()
	const parent, name = types.UID("u"), "a.org/children-of.create"
	var k Keeper
	leave, err := k.memory.awaitTurn(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	k.memory.replaceProof(parent, "default", name, childSet{web: {version: "v1", uid: "1"}})
	k.memory.addApplied(parent, name, &appliedChild{child: declaredChild{identity: web}, uid: "1"})
	k.Forget(parent)
	if proven, drifted := k.memory.provenRecords(parent), k.memory.driftedChildren(parent); len(proven) > 0 ||
		len(drifted) > 0 {
		t.Errorf("children are still known after Forget: %v, %v", proven, drifted)
	}
	over := errors.New("the call is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := k.memory.awaitTurn(ctx, parent); !errors.Is(err, over) {
		t.Fatalf("a second call runs at the same time as the first one: %v", err)
	}
	leave()
	if leave, err = k.memory.awaitTurn(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	leave()
	if len(k.memory.parents) > 0 {
		t.Errorf("the memory of a parent without children and calls is kept: %v", k.memory.parents)
	}
}

// TestMemoryIsDroppedWhenItIsEmpty shows that proofs and applications of a handler are dropped independently of each
// other, and of those of other handlers.
func TestMemoryIsDroppedWhenItIsEmpty(t *testing.T) {
	t.Parallel()
	const parent, first, second = types.UID("u"), "a.org/children-of.a", "a.org/children-of.b"
	var m memory
	one := &appliedChild{child: declaredChild{identity: web}, uid: "1"}
	m.addApplied(parent, first, one)
	m.replaceProof(parent, "default", second, childSet{role: {version: "v1"}})
	if !m.hasHeld(parent) {
		t.Error("a cluster-scoped child of a namespaced parent does not need the finalizer")
	}
	m.keepDeclared(parent, second, nil)
	if got := m.dropApplied(parent, second, web); got != nil {
		t.Errorf("dropping for the second handler returned %v, which the first one applied", got)
	}
	if got := m.dropApplied(parent, first, web); got != one {
		t.Errorf("got %v, want the application", got)
	}
	if sets := m.parentSets(parent); len(sets) != 1 || sets[0].recordName != second {
		t.Errorf("kept are %v, want only the proof of the second handler", sets)
	}
	if m.replaceProof(parent, "default", second, nil); m.hasHeld(parent) || len(m.parents) > 0 {
		t.Errorf("kept are %v, want an empty memory", m.parents)
	}
}
