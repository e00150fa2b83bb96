package configurations

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRecords limits the fingerprints in an object. It exceeds the number of certificates in a bundle.
const maxRecords = 16

// Records stores the fingerprints of the certificates that an operator has issued, in an annotation of a webhook
// configuration. It implements the ledger of package certificates. Tenants who can write Secrets usually cannot write
// webhook configurations, which are cluster-scoped.
type Records struct {
	objects []*managedObject // both objects; the first one gets new records
}

// NewRecords returns the records of the operator. New ones are stored in the mutating object if mutating is set. Both
// are read, because the choice may have been different earlier.
func NewRecords(o Options, mutating bool) *Records {
	objects := NewWriter(o).objects[:]
	if mutating {
		slices.Reverse(objects)
	}
	return &Records{objects}
}

// Read returns the fingerprints in both objects, and the CA bundles of the operator's entries, in PEM.
func (r *Records) Read(ctx context.Context) (fingerprints []string, published []byte, err error) {
	for _, object := range r.objects {
		d, err := object.readObject(ctx)
		if err != nil {
			return nil, nil, err
		}
		fingerprints = append(fingerprints, d.recordedFingerprints()...)
		own := d.ownEntryNames(nil)
		var former string
		// Entries of this operator may have been published by a version that did not record certificates.
		for i, name := range namesOfEntries(d.allEntries()) {
			// Entries of other operators have their own CAs. With AsKopf, the object only contains those of this one.
			if !object.options.Form.AsKopf && !slices.Contains(own, name) {
				continue
			}
			// Entries usually have the same bundle, so repetitions are skipped.
			text, _ := bundleOfEntry(d.allEntries()[i]).(string)
			if bundle, err := base64.StdEncoding.DecodeString(text); err == nil && text != former {
				published = append(published, bundle...)
			}
			former = text
		}
	}
	return fingerprints, published, nil
}

// Record puts fingerprints in front of the others. If there are too many, the last ones are dropped.
func (r *Records) Record(ctx context.Context, fingerprints []string) error {
	object := r.objects[0]
	// The whole list is replaced, so concurrent writes of two replicas must be conflicts.
	return object.editObject(ctx, func(d document) error {
		all := slices.Clone(fingerprints)
		for _, former := range d.recordedFingerprints() {
			if !slices.Contains(all, former) && len(all) < maxRecords {
				all = append(all, former)
			}
		}
		return object.setFingerprints(ctx, d, all)
	})
}

// fingerprintsKey returns the key of the annotation with the records, next to that of the mark.
func (d document) fingerprintsKey() string {
	return strings.TrimSuffix(d.annotation, "/webhooks") + "/certificates"
}

// recordedFingerprints returns the fingerprints in the object.
func (d document) recordedFingerprints() []string {
	return strings.Fields(d.object.GetAnnotations()[d.fingerprintsKey()])
}

// setFingerprints replaces the fingerprints in the object, and creates the object if necessary. An empty list removes
// the annotation.
func (k *managedObject) setFingerprints(ctx context.Context, d document, fingerprints []string) error {
	before, path := d.object.DeepCopy(), []string{"metadata", "annotations", d.fingerprintsKey()}
	unstructured.RemoveNestedField(d.object.Object, path...)
	if len(fingerprints) > 0 {
		text := strings.Join(fingerprints, " ")
		_ = unstructured.SetNestedField(d.object.Object, text, path...) // this cannot fail: all parents are maps
	}
	// The first certificate is recorded before there are entries.
	if before.GetResourceVersion() == "" {
		return k.options.Client.Create(ctx, d.object, client.FieldOwner(k.options.Operator))
	}
	return k.patchChanges(ctx, before, d)
}
