package journal

import (
	"slices"
	"sync"
)

// shared holds the last look for each reason, and the last write, of one kind. The same decisions are often made for
// many objects one after another. Their entries then share one look, which can have verdicts on many handlers. Recorded
// values are never modified, so sharing is safe.
type shared struct {
	mu    sync.Mutex
	looks map[string]*Look
	write *Write
}

// sharedLook returns the last look if it is equal, or else a copy of this one. It must be a copy: a pointer into the
// draft would keep the draft, and with it the object, in memory.
func (k *KindJournal) sharedLook(of Look) *Look {
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	// One look for each reason is kept, because looks at changes, events and background handlers alternate.
	if last := k.shared.looks[of.Reason]; last != nil && last.isSameAs(&of) {
		return last
	}
	if k.shared.looks == nil {
		k.shared.looks = map[string]*Look{}
	}
	k.shared.looks[of.Reason] = &of
	return &of
}

// isSameAs reports whether the looks are equal, including the times in their verdicts. A verdict with a time is never
// equal, because times are compared by pointer.
func (l *Look) isSameAs(other *Look) bool {
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
