package defaults

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/internal/storages"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/kind"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// digestLimit is the size of the essence, in bytes of JSON, above which only digests of values are stored. The
// annotations of an object share 256 KiB among all operators.
const digestLimit = 100 * 1024

var (
	errIgnoredFields = errors.New(
		"give the fields to the storage of DiffbaseStorage instead: it decides what counts",
	)
	errEmptyKey         = errors.New("the key is empty, so it would be no secret")
	errFormerDigestKeys = errors.New("there is no DigestKey that came after them; give the present one, too")
)

// Persistence is the section Persistence of the settings, with the fields of kopf.PersistenceSettings.
type Persistence struct {
	Finalizer, AnnotationPrefix string
	DiffbaseStorage             diffbase.Storage
	ProgressStorage             progress.Storage
	IgnoredFields               []string
	DigestKey                   []byte
	FormerDigestKeys            [][]byte
	TrustCopies, KopfFormats    bool
}

// StoredForm is the form of the data that the operator stores on objects.
type StoredForm struct {
	// the annotation with the uid of the object that the data belongs to; empty accepts data of copies
	BoundTo     string
	CompactSubs bool // records of sub-handlers are stored in the compact form
	Digests     kind.Digests
}

// ResolveDefaults sets the default finalizer, annotation prefix and storages. It returns the stored form and the
// invalid fields.
func (p *Persistence) ResolveDefaults(operator string) (s StoredForm, problems []error) {
	problems = p.resolveNames(operator)
	if !p.TrustCopies {
		s.BoundTo = p.AnnotationPrefix + "/" + keys.HandledUID
	}
	bound := s.BoundTo
	if p.KopfFormats || p.DiffbaseStorage != nil || p.ProgressStorage != nil {
		bound = "" // other storages do not keep the data of a copy apart
	}
	// Kopf and storages of users expect one record for each sub-handler.
	s.CompactSubs = p.ProgressStorage == nil && !p.KopfFormats
	problems = append(problems, p.resolveDiffbase(bound), p.resolveProgress(bound), p.resolveDigests(&s.Digests))
	return s, NonNilErrors(problems...)
}

// resolveNames checks the names of the finalizer and of the annotations, and sets their defaults.
func (p *Persistence) resolveNames(operator string) (problems []error) {
	if p.Finalizer != "" {
		if err := keys.ValidateKey(p.Finalizer); err != nil {
			problems = append(problems, fmt.Errorf(
				"Persistence.Finalizer: %q: it must be a domain, a slash and a name: %w", p.Finalizer, err,
			))
		}
	}
	// The name of the operator is the default prefix, and is checked on its own. Kopf's legacy annotations need a
	// shorter one.
	if p.AnnotationPrefix != "" || p.KopfFormats {
		if err := checkPrefix(cmp.Or(p.AnnotationPrefix, operator), p.KopfFormats); err != nil {
			problems = append(problems, fmt.Errorf("Persistence.AnnotationPrefix: %w", err))
		}
	}
	p.Finalizer = cmp.Or(p.Finalizer, operator+"/finalizer")
	p.AnnotationPrefix = cmp.Or(p.AnnotationPrefix, operator)
	return problems
}

// resolveDiffbase checks the given storage, or creates the annotation storage of the prefix.
func (p *Persistence) resolveDiffbase(bound string) error {
	standard := diffbase.Annotations{Prefix: p.AnnotationPrefix, WithoutV1: !p.KopfFormats, Bound: bound}
	for _, text := range p.IgnoredFields {
		path, err := codec.ParsePath(text)
		if err != nil {
			return fmt.Errorf("Persistence.IgnoredFields: %w", err)
		}
		standard.IgnoredFields = append(standard.IgnoredFields, path)
	}
	// An invalid storage is replaced, too, so that later checks do not call it.
	given := p.DiffbaseStorage
	p.DiffbaseStorage = standard
	if given == nil {
		return nil
	}
	if len(p.IgnoredFields) > 0 {
		return fmt.Errorf("Persistence.IgnoredFields: %w", errIgnoredFields)
	}
	given = storages.IsolateDiffbase(given)
	if err := checkDiffbase(given); err != nil {
		return fmt.Errorf("Persistence.DiffbaseStorage: %w", err)
	}
	p.DiffbaseStorage = given
	return nil
}

// resolveProgress checks the given storage, or creates the annotation storage of the prefix.
func (p *Persistence) resolveProgress(bound string) error {
	given := p.ProgressStorage
	// Kopf's default storage also reads records that former versions of Kopf stored in the status.
	p.ProgressStorage = progress.Annotations{Prefix: p.AnnotationPrefix, WithoutV1: true, Bound: bound}
	if p.KopfFormats {
		p.ProgressStorage = progress.Smart{Prefix: p.AnnotationPrefix}
	}
	if given == nil {
		return nil
	}
	// Isolate the engine from the storage: a panic in it becomes an error.
	given = storages.IsolateProgress(given)
	if err := checkProgress(given); err != nil {
		return fmt.Errorf("Persistence.ProgressStorage: %w", err)
	}
	p.ProgressStorage = given
	return nil
}

// resolveDigests sets which values are stored as digests only. Kopf cannot read digests, so with KopfFormats neither
// Secrets nor large objects get them.
func (p *Persistence) resolveDigests(d *kind.Digests) error {
	if !p.KopfFormats {
		*d = kind.Digests{Limit: digestLimit, Secrets: true}
	}
	switch {
	case p.DigestKey == nil && len(p.FormerDigestKeys) > 0:
		return fmt.Errorf("Persistence.FormerDigestKeys: %w", errFormerDigestKeys)
	// Without a key, the uid of each object is used.
	case p.DigestKey == nil:
		return nil
	case len(p.DigestKey) == 0:
		return fmt.Errorf("Persistence.DigestKey: %w", errEmptyKey)
	}
	for i, key := range p.FormerDigestKeys {
		if len(key) == 0 {
			return fmt.Errorf("Persistence.FormerDigestKeys[%d]: %w", i, errEmptyKey)
		}
	}
	// The first key creates digests; the former keys only recognize them.
	d.Keys = append([][]byte{p.DigestKey}, p.FormerDigestKeys...)
	return nil
}
