package journal

import (
	"slices"
	"sync"
)

// shared are the last looks, by their reasons, and the last write at objects of one kind. What happens to one of many
// objects happens to the next one, too: all of them remember the same look then, which may have verdicts on many
// handlers, rather than one each. Nobody changes what was noted.
type shared struct {
	mu    sync.Mutex
	looks map[string]*Look
	write *Write
}

// sharedLook gives the last look that says the same, or this one by itself: what is noted must not keep the draft, and
// the object with it.
func (k *Kind) sharedLook(of Look) *Look {
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	if last := k.shared.looks[of.Reason]; last != nil && last.same(&of) {
		return last
	}
	if k.shared.looks == nil {
		k.shared.looks = map[string]*Look{}
	}
	k.shared.looks[of.Reason] = &of
	return &of
}

// same is repeats with the times of the verdicts: one that has a time is never the same as another one.
func (l *Look) same(other *Look) bool {
	return l.repeats(other) && slices.Equal(l.Verdicts, other.Verdicts)
}

// sharedWrite gives the last write that says the same, or this one.
func (k *Kind) sharedWrite(of *Write) *Write {
	k.shared.mu.Lock()
	defer k.shared.mu.Unlock()
	if last := k.shared.write; last == nil || !last.repeats(of) {
		k.shared.write = of
	}
	return k.shared.write
}
