package kopf

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PersistenceSettings say what the operator writes to its objects, and where; docs/storages.md has more of it. Kopf:
// settings.persistence.
type PersistenceSettings struct {
	// Finalizer is the name of the finalizer that holds objects until their delete handlers are done: a domain, a slash
	// and a name. Default: "<name>/finalizer"; by [AsKopf], kopf.zalando.org/KopfFinalizerMarker. An operator no longer
	// knows the finalizers of a former name: they have to be removed by hand. Kopf: finalizer.
	Finalizer string
	// AnnotationPrefix is the domain of all annotations that the operator writes, but for those of DiffbaseStorage and
	// ProgressStorage. Default: the operator's name; by [AsKopf], kopf.zalando.org. Another prefix makes all objects
	// new. Kopf: the prefix of the storages.
	AnnotationPrefix string
	// DiffbaseStorage is where the object as it was handled last is kept, on the object itself: a storage of package
	// storage/diffbase, such as diffbase.Status{} or diffbase.Multi{…}, or one of your own. Default: an annotation of
	// the prefix. Two annotations of that prefix stay in any case: whose memory it is, and what an unfinished change
	// was about. At the set-up, the storage is asked to store an empty essence into an empty patch, to see where.
	//
	// Another storage makes all objects new. To move from one to another, see docs/storages.md. Kopf: diffbase_storage.
	DiffbaseStorage diffbase.Storage
	// ProgressStorage is where the progress of unfinished handlers is kept, on the object itself: a storage of package
	// storage/progress, such as progress.Status{}, or one of your own. Default: annotations of the prefix. At the
	// set-up, the storage is asked to store a record of every handler into an empty patch, to see where.
	//
	// A storage given here keeps a record of every sub-handler, as Kopf does, even if it is that of the default. Only
	// without it and without KopfFormats, those that have succeeded take no more than their names in the record of
	// their handler. Kopf: progress_storage.
	ProgressStorage progress.Storage
	// IgnoredFields are fields whose changes are no changes, such as "spec.replicas" where an autoscaler is at work.
	// Keys with dots stand in double quotes: `metadata.labels."example.org/revision"`. They are ignored even if a
	// handler is on such a field. A DiffbaseStorage has its own. Default: none. Kopf: ignored_fields of the storage.
	IgnoredFields []string
	// DigestKey is the secret of the digests that are remembered instead of values that are secret or too large, see
	// [Selection.Redacted]. Default, for nil: the uid of the object, which is no secret: whoever reads the object can
	// try out values, and will find short ones. Any number of bytes will do, but none: an empty key is an error. 32
	// random ones are best. It is the same in all replicas.
	DigestKey []byte
	// FormerDigestKeys are the DigestKeys before the present one: what has a digest of a key that is lost looks
	// updated. Default: none.
	FormerDigestKeys [][]byte
	// TrustCopies takes a copy of a handled object, annotations included, for handled, as Kopf does. Default: an
	// annotation binds the memory to the uid of its object, so a copy is a new object; memory without that annotation
	// is trusted. True by [AsKopf].
	TrustCopies bool
	// KopfFormats stores nothing that Kopf could not read, and reads what its former versions have stored: annotations
	// in both of its spellings, progress in the status, a record of every sub-handler, the texts of errors of limits in
	// Kopf's words, and values instead of digests where they fit. True by [AsKopf].
	KopfFormats bool
}
