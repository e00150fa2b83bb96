package journal

import (
	"slices"
	"sync"
)

// sharedEntries holds the last look for each reason, and the last write, of one kind. The same decisions are often made
// for many objects one after another. Their entries then share one look, which can have verdicts on many handlers.
// Recorded values are never modified, so sharing is safe.
type sharedEntries struct {
	mu          sync.Mutex
	evaluations map[string]*Evaluation
	write       *Write
}

// sharedEvaluation returns the last look if it is equal, or else a copy of this one. It must be a copy: a pointer into
// the draft would keep the draft, and with it the object, in memory.
func (k *KindJournal) sharedEvaluation(of Evaluation) *Evaluation {
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	// One look for each reason is kept, because looks at changes, events and background handlers alternate.
	if last := k.shared.evaluations[of.Reason]; last != nil && last.isSameAs(&of) {
		return last
	}
	if k.shared.evaluations == nil {
		k.shared.evaluations = map[string]*Evaluation{}
	}
	k.shared.evaluations[of.Reason] = &of
	return &of
}

// isSameAs reports whether the looks are equal, including the times in their verdicts. A verdict with a time is never
// equal, because times are compared by pointer.
func (l *Evaluation) isSameAs(other *Evaluation) bool {
	return l.isRepetitionOf(other) && slices.Equal(l.Verdicts, other.Verdicts)
}

// sharedWrite returns the last write if it is equal, or else this one.
func (k *KindJournal) sharedWrite(of *Write) *Write {
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	// Writes of one kind are often the same for many objects, such as adding the finalizer.
	if last := k.shared.write; last == nil || !last.isRepetitionOf(of) {
		k.shared.write = of
	}
	return k.shared.write
}
