package facade

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/storages"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/keys"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// digestLimit is how many bytes of JSON are remembered by value: one object has 256 KiB of annotations, for all
// operators.
const digestLimit = 100 * 1024

// storageOptions are what the options say of the storages, be it before or after AsKopf.
type storageOptions struct {
	prefix, finalizer string
	bound             *bool
	ignored           []diff.Path
	diffbase          diffbase.Storage
	progress          progress.Storage
}

// DiffBase sets where the object as it was handled last is kept, on the object itself: a storage of package
// storage/diffbase, such as diffbase.Status{} or diffbase.Multi{…}, or one of your own. Default: an annotation of the
// operator's prefix. Two annotations of that prefix stay in any case: whose memory it is, and what an unfinished change
// was about. At the set-up, the storage is asked to store an empty essence into an empty patch, to see where.
//
// Another storage makes all objects new. To move from one to another, see docs/storages.md.
// Kopf: persistence.diffbase_storage.
func DiffBase(storage diffbase.Storage) OperatorOption {
	return setting(func(s *settings) error {
		storage = storages.Diffbase(storage)
		if err := checkDiffBase(storage); err != nil {
			return fmt.Errorf("DiffBase: %w", err)
		}
		s.storages.diffbase = storage
		return nil
	})
}

// Progress sets where the progress of unfinished handlers is kept, on the object itself: a storage of package
// storage/progress, such as progress.Status{}, or one of your own. Default: annotations of the operator's prefix. At
// the set-up, the storage is asked to store a record of every handler into an empty patch, to see where.
//
// A storage given here keeps a record of every sub-handler, as Kopf does, even if it is that of the default. Only
// without this option and without [AsKopf], those that have succeeded take no more than their names in the record of
// their handler. Kopf: persistence.progress_storage.
func Progress(storage progress.Storage) OperatorOption {
	return setting(func(s *settings) error {
		storage = storages.Progress(storage)
		if err := checkProgress(storage); err != nil {
			return fmt.Errorf("Progress: %w", err)
		}
		s.storages.progress = storage
		return nil
	})
}

// AnnotationPrefix sets the domain of all annotations that the operator writes, storages given by [DiffBase] and
// [Progress] excepted. Default: the operator's name; with [AsKopf], kopf.zalando.org. Another prefix makes all objects
// new. Kopf: the prefix of the storages.
func AnnotationPrefix(prefix string) OperatorOption {
	return setting(func(s *settings) error {
		if err := checkPrefix(prefix, false); err != nil {
			return fmt.Errorf("AnnotationPrefix: %w", err)
		}
		s.storages.prefix = prefix
		return nil
	})
}

// IgnoredFields are fields whose changes are no changes, such as "spec.replicas" where an autoscaler is at work. Keys
// with dots stand in double quotes: `metadata.labels."example.org/revision"`. They are ignored even if a handler is on
// such a field. A storage given by [DiffBase] has its own. Kopf: ignored_fields of the diff-base storage.
func IgnoredFields(paths ...string) OperatorOption {
	return setting(func(s *settings) error {
		for _, text := range paths {
			path, err := codec.ParsePath(text)
			if err != nil {
				return fmt.Errorf("IgnoredFields: %w", err)
			}
			s.storages.ignored = append(s.storages.ignored, path)
		}
		return nil
	})
}

// HandledUID sets whether an annotation binds the memory to its object, so that a copy of a handled object is a new
// one. Default: true; with [AsKopf], false. Memory without it is trusted.
func HandledUID(bound bool) OperatorOption {
	return setting(func(s *settings) error {
		s.storages.bound = &bound
		return nil
	})
}

// DigestKey sets the secret of the digests that are remembered instead of values that are secret or too large, see
// [Selection.Redacted]. Default: the uid of the object, which is no secret: whoever reads the object can try out
// values, and will find short ones. Any number of bytes will do; 32 random ones are best. It is the same in all
// replicas.
//
// After a change of the key, give the former ones as well: what has a digest of a key that is lost looks updated.
func DigestKey(key []byte, former ...[]byte) OperatorOption {
	return setting(func(s *settings) error {
		keys := append([][]byte{key}, former...)
		if slices.ContainsFunc(keys, func(key []byte) bool { return len(key) == 0 }) {
			return errors.New("DigestKey: a key is empty")
		}
		for i, key := range keys {
			keys[i] = slices.Clone(key)
		}
		s.digests.Keys = keys
		return nil
	})
}

// Finalizer sets the name of the finalizer that holds objects until their delete handlers are done: a domain, a slash
// and a name. Default: "<name>/finalizer"; with [AsKopf], kopf.zalando.org/KopfFinalizerMarker. An operator no longer
// knows the finalizers of a former name: they have to be removed by hand. Kopf: persistence.finalizer.
func Finalizer(name string) OperatorOption {
	return setting(func(s *settings) error {
		if err := keys.ValidateKey(name); err != nil {
			return fmt.Errorf("Finalizer(%q): it must be a domain, a slash and a name: %w", name, err)
		}
		s.storages.finalizer = name
		return nil
	})
}
