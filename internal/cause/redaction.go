package cause

import (
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/internal/asciijson"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Redaction selects the values of a resource's objects that are stored as digests. The zero value stores all values as
// they are.
type Redaction struct {
	// Paths are the paths of secret values, including everything below them; a nil path is the whole object. A list
	// counts as one value.
	Paths []diff.Path
	// Limit is the maximum size of an essence that is stored by value, in bytes of JSON; zero means any size.
	Limit int
	// Keys are the secret keys of the digests: the first one makes digests, all of them recognize digests. The object's
	// uid is an additional key, and the only one without other keys. The uid is not a secret, so a guessed value can be
	// confirmed then.
	Keys [][]byte
}

// essenceSealer replaces the values of one essence by digests.
type essenceSealer struct {
	digests digests
	hidden  bool  // the essence has Hidden values
	paths   []any // paths of the digests, as lists of keys
	err     error // the first one; it ends the work
}

// StoredForms yields the forms in which an essence can be stored, the best one first: with all values that are not
// secret, with digests only, and as a single digest. Each form is smaller than the one before, and has less
// information. A form is only made when the caller asks for it.
func (r *Redaction) StoredForms(
	body map[string]any, essence diffbase.Essence,
) func(yield func(diffbase.Essence, error) bool) {
	return func(yield func(diffbase.Essence, error) bool) {
		large, err := r.ExceedsLimit(essence)
		if err != nil {
			yield(nil, err)
			return
		}
		d, paths, all := r.objectDigests(body), r.Paths, []diff.Path{nil}
		// A large essence is stored as digests only, as if all paths were secret.
		if large {
			paths = all
		}
		_ = yield(d.sealPaths(essence, paths)) && yield(d.sealPaths(essence, all)) && yield(d.sealWhole(essence))
	}
}

// objectDigests returns the digests of the object. Clipping the keys avoids a write into the shared slice.
func (r *Redaction) objectDigests(body map[string]any) digests {
	metadata, _ := body["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	keys := append(r.Keys[:len(r.Keys):len(r.Keys)], []byte(uid))
	return digests{uid: uid, keys: keys}
}

// ExceedsLimit reports whether the essence exceeds the limit, so that none of its values are stored.
func (r *Redaction) ExceedsLimit(essence diffbase.Essence) (bool, error) {
	if r == nil || r.Limit <= 0 {
		return false, nil
	}
	size, err := asciijson.EncodedSize(WithoutHidden(essence))
	if err != nil {
		return false, fmt.Errorf("measuring the essence: %w", err)
	}
	return size > r.Limit, nil
}

// WithoutHidden returns the mapping without the keys of Hidden values, so that it is plain JSON. This is the mapping
// itself if no value is hidden, and otherwise a copy that shares lists and scalars with it.
func WithoutHidden(value map[string]any) map[string]any {
	if !holdsHidden(value) {
		return value
	}
	return copyWithoutHidden(value)
}

// copyWithoutHidden returns a copy of the mapping without the keys of Hidden values.
func copyWithoutHidden(value map[string]any) map[string]any {
	bare := make(map[string]any, len(value))
	for key, inner := range value {
		switch inner := inner.(type) {
		case Hidden: // left out
		case map[string]any:
			bare[key] = copyWithoutHidden(inner)
		default:
			bare[key] = inner
		}
	}
	return bare
}

// holdsHidden reports whether the value is or contains a Hidden value.
func holdsHidden(value any) bool {
	mapping, _ := value.(map[string]any)
	for _, inner := range mapping {
		if holdsHidden(inner) {
			return true
		}
	}
	_, isHidden := value.(Hidden)
	return isHidden
}

// sealPaths returns the essence as it is stored: with digests in place of Hidden values and of the values under the
// paths.
func (d digests) sealPaths(essence diffbase.Essence, paths []diff.Path) (diffbase.Essence, error) {
	s := &essenceSealer{digests: d, hidden: holdsHidden(essence)}
	// Most essences do not have secrets: they are stored unchanged.
	if len(paths) == 0 && !s.hidden {
		return essence, nil
	}
	sealed, _ := s.sealValue(essence, make(diff.Path, 0, diff.MaxDepth), newScope(paths), false).(map[string]any)
	if s.err == nil && len(s.paths) > 0 {
		sealed[digestPathsKey] = s.paths
	}
	return sealed, s.err
}

// sealValue returns the sealed value at a path. It copies a mapping only if something in it can be replaced. It notes
// the path unless a path above is noted. The path is a shared buffer, which must not be kept.
func (s *essenceSealer) sealValue(value any, at diff.Path, scope *scope, noted bool) any {
	mapping, ok := digestedFields(value, at)
	hidden, isHidden := value.(Hidden)
	// Nulls do not need a digest: they count as absent.
	if value == nil || !ok && !isHidden && scope.isEmpty() || s.err != nil {
		return value
	}
	if !noted && (scope.coversAll() || !ok) {
		s.notePath(at)
		noted = true
	}
	// The digest is all that is known of a former value. It stays valid, because the path is the same.
	if isHidden {
		return hidden.digest
	}
	if !ok {
		var digest string
		digest, s.err = s.digests.makeDigest(at, value)
		return digest
	}
	if scope.isEmpty() && !s.hidden {
		return value
	}
	sealed := make(map[string]any, len(mapping))
	for key, inner := range mapping {
		sealed[key] = s.sealValue(inner, append(at, key), scope.atKey(key), noted)
	}
	return sealed
}

// notePath adds a path to the list of digests. It copies the path, as the buffer is reused.
func (s *essenceSealer) notePath(at diff.Path) {
	keys := make([]any, len(at))
	for i, key := range at {
		keys[i] = key
	}
	s.paths = append(s.paths, keys)
}

// digestedFields returns the value as a mapping if its fields have digests of their own. Mappings below the maximum
// depth of diffs count as one value, as lists do.
func digestedFields(value any, at diff.Path) (map[string]any, bool) {
	mapping, ok := value.(map[string]any)
	return mapping, ok && len(at) < diff.MaxDepth
}

// sealWhole returns the essence as a single digest of all values.
func (d digests) sealWhole(essence diffbase.Essence) (diffbase.Essence, error) {
	digest, err := d.makeDigest(nil, essence)
	if err != nil {
		return nil, err
	}
	return diffbase.Essence{singleDigestKey: digest}, nil
}

// RestoreEssence restores the last-handled essence from its stored form, by comparing it with the present one. A digest
// becomes the present value if that has this digest, and Hidden otherwise. So does a secret value that was stored
// before it was declared secret. A single digest becomes the present essence or, if that differs, an empty essence, so
// that the diff is an addition of the whole object.
//
// Diffs of the two must not show the values under the veiled paths.
func (r *Redaction) RestoreEssence(
	body map[string]any, stored, present diffbase.Essence,
) (essence diffbase.Essence, veiled []diff.Path) {
	if stored == nil {
		return nil, r.Paths
	}
	d := r.objectDigests(body)
	// A single digest is the only key. Beside other keys, it is data of the object.
	if digest, isText := stored[singleDigestKey].(string); isText && len(stored) == 1 {
		if d.matchesValue(digest, nil, present) {
			return present, r.Paths
		}
		return r.UnknownEssence(present)
	}
	// The stored paths count as well: the rules may have changed since.
	sealed := sealedPaths(stored)
	if len(sealed) == 0 && len(r.Paths) == 0 {
		return stored, nil
	}
	digested, secret := newScope(sealed), newScope(r.Paths)
	essence, at := make(diffbase.Essence, len(stored)), make(diff.Path, 0, diff.MaxDepth)
	for key, value := range stored {
		// The key is only ours if it has a list of paths.
		if key != digestPathsKey || len(sealed) == 0 {
			essence[key] = d.restoreValue(value, present[key], append(at, key), digested.atKey(key), secret.atKey(key))
		}
	}
	return essence, append(sealed, r.Paths...)
}

// UnknownEssence returns a replacement for a last-handled essence that is only known to differ from the present one. It
// is empty.
func (r *Redaction) UnknownEssence(present diffbase.Essence) (essence diffbase.Essence, veiled []diff.Path) {
	if len(diff.Compute(diffbase.Essence{}, present)) > 0 {
		return diffbase.Essence{}, r.Paths
	}
	// The present essence is empty, too: without this key, there would be no difference.
	return diffbase.Essence{singleDigestKey: Hidden{}}, append([]diff.Path{{singleDigestKey}}, r.Paths...)
}

// sealedPaths returns the paths of the digests in a stored essence. If the list does not have the expected form, it is
// data of the object, and there are no digests.
func sealedPaths(stored diffbase.Essence) (paths []diff.Path) {
	list, _ := stored[digestPathsKey].([]any)
	for _, item := range list {
		keys, isPath := item.([]any)
		path := make(diff.Path, len(keys))
		for i, key := range keys {
			text, isText := key.(string)
			path[i], isPath = text, isPath && isText
		}
		if !isPath {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}

// restoreValue restores the value at a path, given the present one. The path is a shared buffer, which must not be
// kept.
func (d digests) restoreValue(then, now any, at diff.Path, digested, secret *scope) any {
	if then == nil || digested.isEmpty() && secret.isEmpty() {
		return then
	}
	mapping, ok := digestedFields(then, at)
	// In a mapping, each field has a digest of its own.
	if ok {
		beside, _ := now.(map[string]any)
		recalled := make(map[string]any, len(mapping))
		for key, inner := range mapping {
			recalled[key] = d.restoreValue(inner, beside[key], append(at, key), digested.atKey(key), secret.atKey(key))
		}
		return recalled
	}
	digest, isText := then.(string)
	switch {
	case digested.coversAll() && isText:
		// A mapping and null never have a digest, see [digestedFields]: one that is stored is forged.
		if _, isMapping := digestedFields(now, at); !isMapping && now != nil && d.matchesValue(digest, at, now) {
			return now
		}
		return Hidden{digest}
	case secret.isEmpty() || diff.Equal(then, now):
		return then
	// The value was stored before it was secret. The diff may show that it changed, but not the value.
	default:
		// A value without a JSON form has no digest. Stored values are JSON, so the error cannot happen.
		digest, _ := d.makeDigest(at, then)
		return Hidden{digest}
	}
}
