package configurations

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostRecords is how many fingerprints an object has at most. The bundle of a certificate has fewer.
const mostRecords = 16

// Records keeps the fingerprints of the certificates that an operator has issued, in an annotation of an object of
// webhook configurations. Tenants cannot write those, even where they can write Secrets.
type Records struct {
	objects []*kept // the first one gets new records
	all     bool    // all entries are those of the operator
}

// NewRecords returns the records of the operator. New ones are written into the mutating object if mutating is set.
func NewRecords(o Options, mutating bool) *Records {
	objects := []*kept{{options: o, kind: validatingKind}, {options: o, kind: mutatingKind}}
	if mutating {
		slices.Reverse(objects)
	}
	return &Records{objects: objects, all: o.Form.AsKopf}
}

// Read returns the fingerprints of both objects, and the CA bundles of the operator's entries, in PEM.
func (r *Records) Read(ctx context.Context) (fingerprints []string, published []byte, err error) {
	for _, object := range r.objects {
		d, err := object.read(ctx)
		if err != nil {
			return nil, nil, err
		}
		fingerprints = append(fingerprints, d.records()...)
		own := d.ownNames(nil)
		var former string
		for i, name := range namesOf(d.entries()) {
			if !r.all && !slices.Contains(own, name) {
				continue
			}
			text, _ := bundleOf(d.entries()[i]).(string)
			if bundle, err := base64.StdEncoding.DecodeString(text); err == nil && text != former {
				published = append(published, bundle...)
			}
			former = text
		}
	}
	return fingerprints, published, nil
}

// Record puts fingerprints before the others. The last ones are removed if there are too many.
func (r *Records) Record(ctx context.Context, fingerprints []string) error {
	object := r.objects[0]
	return object.edit(ctx, func(d document) error {
		all := slices.Clone(fingerprints)
		for _, former := range d.records() {
			if !slices.Contains(all, former) && len(all) < mostRecords {
				all = append(all, former)
			}
		}
		return object.setRecords(ctx, d, all)
	})
}

// recordsKey is the annotation of the records.
func (d document) recordsKey() string {
	return strings.TrimSuffix(d.annotation, "/webhooks") + "/certificates"
}

// records are the fingerprints in the object.
func (d document) records() []string {
	return strings.Fields(d.object.GetAnnotations()[d.recordsKey()])
}

// setRecords replaces the fingerprints in the object. An empty list removes the annotation.
func (k *kept) setRecords(ctx context.Context, d document, fingerprints []string) error {
	before, path := d.object.DeepCopy(), []string{"metadata", "annotations", d.recordsKey()}
	unstructured.RemoveNestedField(d.object.Object, path...)
	if len(fingerprints) > 0 {
		text := strings.Join(fingerprints, " ")
		_ = unstructured.SetNestedField(d.object.Object, text, path...) // all of them are maps
	}
	if before.GetResourceVersion() == "" {
		return k.options.Client.Create(ctx, d.object, client.FieldOwner(k.options.Operator))
	}
	return k.patchFrom(ctx, before, d)
}
