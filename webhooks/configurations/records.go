package configurations

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		entries := d.own(nil)
		if r.all {
			entries = d.entries()
		}
		var former string
		for _, entry := range entries {
			text, _ := bundleOf(entry).(string)
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
	var err error
	for range attempts {
		var d document
		if d, err = object.read(ctx); err != nil {
			return err
		}
		all := slices.Clone(fingerprints)
		for _, former := range d.records() {
			if !slices.Contains(all, former) && len(all) < mostRecords {
				all = append(all, former)
			}
		}
		d.setRecords(all)
		err = object.send(ctx, d)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return explained(err, false)
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
func (d document) setRecords(fingerprints []string) {
	path := []string{"metadata", "annotations", d.recordsKey()}
	if len(fingerprints) == 0 {
		unstructured.RemoveNestedField(d.object.Object, path...)
		return
	}
	_ = unstructured.SetNestedField(d.object.Object, strings.Join(fingerprints, " "), path...) // all of them are maps
}
