package kopf

import (
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// PersistenceSettings configure what the operator stores on objects, see docs/storages.md. Kopf: settings.persistence.
type PersistenceSettings struct {
	// Finalizer is the name of the finalizer. Objects keep one of a former name. Default: "<name>/finalizer"; with
	// [AsKopf], that of Kopf. Kopf: finalizer.
	Finalizer string
	// AnnotationPrefix is the domain of annotations. With another prefix, all objects are new. Default: the operator's
	// name; with [AsKopf], kopf.zalando.org. Kopf: prefix.
	AnnotationPrefix string
	// DiffbaseStorage stores the last-handled configuration, such as diffbase.Status{}. With another storage, all
	// objects are new, unless it is a [diffbase.Multi]. Default: an annotation. Kopf: diffbase_storage.
	DiffbaseStorage diffbase.Storage
	// ProgressStorage stores the progress of unfinished handlers, such as progress.Status{}. Default: annotations.
	// Kopf: progress_storage.
	ProgressStorage progress.Storage
	// IgnoredFields are fields whose changes are ignored, such as "spec.replicas". A DiffbaseStorage has its own. Kopf:
	// ignored_fields.
	IgnoredFields []string
	// DigestKey is the secret key of digests, best 32 random bytes: see [Selection.Redacted]. Default, for nil: the uid
	// of the object, which is not secret.
	DigestKey []byte
	// FormerDigestKeys are former keys. Objects with digests of a lost key count as updated.
	FormerDigestKeys [][]byte
	// TrustCopies treats copies of handled objects as handled, as Kopf does. True with [AsKopf].
	TrustCopies bool
	// KopfFormats stores only formats that Kopf can read. True with [AsKopf].
	KopfFormats bool
}
