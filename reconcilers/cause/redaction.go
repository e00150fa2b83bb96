package cause

import (
	"fmt"
	"maps"

	"github.com/kopf-runtime/kopf-runtime/storage/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Redaction says of which values of one kind only digests are remembered, not the values. The zero value remembers all
// as it is.
type Redaction struct {
	// Paths are where values are secret, with all that is in them; a nil path is the whole object. A list is one value.
	Paths []diff.Path
	// Limit is how many bytes of JSON an essence may have to be remembered by value; zero is no limit.
	Limit int
	// Keys are the secrets of the digests: the first one makes them, all of them recognise some. Without any, and in
	// addition to them, the object's uid is one: no secret, so a value that can be guessed can be found out.
	Keys [][]byte
}

func (r *Redaction) digests(body map[string]any) digests {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	keys := append(r.Keys[:len(r.Keys):len(r.Keys)], []byte(uid))
	return digests{uid: uid, keys: keys}
}

// Forms are what can be stored of an essence of the object, the best first; each next one is smaller, and tells less:
// with the values that may be stored, with no values at all, and as one digest of the whole. Only as many are made as
// are asked for.
func (r *Redaction) Forms(
	body map[string]any, essence diffbase.Essence,
) func(yield func(diffbase.Essence, error) bool) {
	return func(yield func(diffbase.Essence, error) bool) {
		d := r.digests(body)
		_ = yield(r.seal(d, essence)) && yield(seal(d, essence, []diff.Path{nil})) && yield(d.whole(essence))
	}
}

func (r *Redaction) seal(d digests, essence diffbase.Essence) (diffbase.Essence, error) {
	paths := r.Paths
	large, err := r.Exceeded(essence)
	if err != nil {
		return nil, err
	}
	if large {
		paths = []diff.Path{nil}
	}
	return seal(d, essence, paths)
}

// Exceeded tells whether the essence is above the limit, so that no values of it are stored.
func (r *Redaction) Exceeded(essence diffbase.Essence) (bool, error) {
	if r == nil || r.Limit <= 0 {
		return false, nil
	}
	text, err := asciijson.Marshal(Bare(essence))
	if err != nil {
		return false, fmt.Errorf("measuring the essence: %w", err)
	}
	return len(text) > r.Limit, nil
}

func (d digests) whole(essence diffbase.Essence) (diffbase.Essence, error) {
	digest, err := d.of(nil, essence)
	if err != nil {
		return nil, err
	}
	return diffbase.Essence{wholeKey: digest}, nil
}

// sealing makes digests of the values of one essence.
type sealing struct {
	digests digests
	hidden  bool  // there is anything hidden somewhere in it
	paths   []any // where they are, as lists of keys
	err     error
}

// seal gives the essence as it is stored: pure JSON again.
func seal(d digests, essence diffbase.Essence, paths []diff.Path) (diffbase.Essence, error) {
	s := &sealing{digests: d, hidden: holdsHidden(essence)}
	sealed, _ := s.value(essence, make(diff.Path, 0, diff.MaxDepth), within(paths), false).(map[string]any)
	if s.err != nil || len(s.paths) == 0 {
		return sealed, s.err
	}
	sealed = maps.Clone(sealed)
	sealed[sealedKey] = s.paths
	return sealed, nil
}

// value is a copy only if there is anything to replace in the essence. Inside of what is noted nothing else needs to
// be. The path is the one that is being walked: it is not to be kept.
func (s *sealing) value(value any, at diff.Path, scope *scope, noted bool) any {
	mapping, ok := descend(value, at)
	hidden, isHidden := value.(Hidden)
	if value == nil || !ok && !isHidden && scope.nothing() || s.err != nil {
		return value
	}
	if !noted && (scope.whole() || !ok) {
		s.note(at)
		noted = true
	}
	if isHidden {
		return hidden.digest
	}
	if !ok {
		var digest string
		digest, s.err = s.digests.of(at, value)
		return digest
	}
	if scope.nothing() && !s.hidden {
		return value
	}
	sealed := make(map[string]any, len(mapping))
	for key, inner := range mapping {
		sealed[key] = s.value(inner, append(at, key), scope.under(key), noted)
	}
	return sealed
}

func (s *sealing) note(at diff.Path) {
	keys := make([]any, len(at))
	for i, key := range at {
		keys[i] = key
	}
	s.paths = append(s.paths, keys)
}
