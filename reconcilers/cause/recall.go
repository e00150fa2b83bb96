package cause

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
)

// Recall gives an essence from what was stored of it on the object, by comparison with the present one. A digest is the
// present value if that has it, and Hidden otherwise. So is a secret value that was stored when it was none. One digest
// of the whole is the present essence, or an empty one, so that the change is seen as the addition of all that there
// is.
//
// The veiled paths are those under which no values are to be shown of how the two differ.
func (r *Redaction) Recall(
	body map[string]any, stored, present diffbase.Essence,
) (essence diffbase.Essence, veiled []diff.Path) {
	if stored == nil {
		return nil, r.Paths
	}
	d := r.digests(body)
	if whole, same := d.isWhole(stored, present); same {
		return present, r.Paths
	} else if whole && len(diff.Compute(diffbase.Essence{}, present)) > 0 {
		return diffbase.Essence{}, r.Paths
	} else if whole {
		// The object has nothing in it any more: there would be no difference.
		return diffbase.Essence{wholeKey: Hidden{}}, append([]diff.Path{{wholeKey}}, r.Paths...)
	}
	sealed := sealedPaths(stored)
	if len(sealed) == 0 && len(r.Paths) == 0 {
		return stored, nil
	}
	c := recalling{d}
	essence = make(diffbase.Essence, len(stored))
	at := make(diff.Path, 0, diff.MaxDepth)
	digested, secret := within(sealed), within(r.Paths)
	for key, value := range stored {
		if key != sealedKey || len(sealed) == 0 {
			essence[key] = c.value(value, present[key], append(at, key), digested.under(key), secret.under(key))
		}
	}
	return essence, append(sealed, r.Paths...)
}

type recalling struct{ digests digests }

// value is the remembered one at a place, where the present one is as given. The path is not to be kept.
func (c recalling) value(then, now any, at diff.Path, digested, secret *scope) any {
	if then == nil || digested.nothing() && secret.nothing() {
		return then
	}
	mapping, ok := descend(then, at)
	if ok {
		beside, _ := now.(map[string]any)
		recalled := make(map[string]any, len(mapping))
		for key, inner := range mapping {
			recalled[key] = c.value(inner, beside[key], append(at, key), digested.under(key), secret.under(key))
		}
		return recalled
	}
	digest, isText := then.(string)
	switch {
	case digested.whole() && isText:
		if c.same(digest, at, now) {
			return now
		}
		return Hidden{digest}
	case secret.nothing() || diff.Equal(then, now):
		return then
	default:
		// What cannot be encoded has no digest, but is none of JSON either.
		digest, _ := c.digests.of(at, then)
		return Hidden{digest}
	}
}

func (c recalling) same(digest string, at diff.Path, now any) bool {
	if _, ok := descend(now, at); ok || now == nil {
		return false
	}
	if hidden, ok := now.(Hidden); ok {
		return hidden.digest == digest
	}
	return c.digests.match(digest, at, now)
}

// sealedPaths are where there are digests in what was stored. What does not look like ours is somebody's data.
func sealedPaths(stored diffbase.Essence) []diff.Path {
	list, _ := stored[sealedKey].([]any)
	paths := make([]diff.Path, 0, len(list))
	for _, item := range list {
		keys, ok := item.([]any)
		if !ok {
			return nil
		}
		path := make(diff.Path, 0, len(keys))
		for _, key := range keys {
			text, ok := key.(string)
			if !ok {
				return nil
			}
			path = append(path, text)
		}
		paths = append(paths, path)
	}
	return paths
}
