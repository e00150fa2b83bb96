package memapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// reviewerFunc returns a reviewer that changes nothing.
func reviewerFunc(see func(mutating bool, r *admissionv1.AdmissionRequest)) memapi.Reviewer {
	return func(_ context.Context, mutating bool, r *admissionv1.AdmissionRequest) ([]byte, []string, error) {
		see(mutating, r)
		return nil, nil, nil
	}
}

func always() bool { return true }

// TestReviewedCollections shows that a collection may have more objects than the limit of reviews for one object.
func TestReviewedCollections(t *testing.T) {
	const objects = 50
	server := memapi.New()
	reviews := 0
	server.AddReviewer(reviewerFunc(func(bool, *admissionv1.AdmissionRequest) { reviews++ }), always)
	for i := range objects {
		server.Put(mapsResource, map[string]any{
			"metadata": map[string]any{"namespace": "default", "name": fmt.Sprintf("a%02d", i)},
		})
	}
	p := newPlayer(t, "http://mem", server)
	got := p.play(request{method: http.MethodDelete, kind: configmaps})
	list, _ := got.Body.(map[string]any)
	items, _ := list["items"].([]any)
	if got.Code != http.StatusOK || len(items) != objects || reviews != objects {
		t.Errorf("deleting a collection: got code %d, %d deleted objects and %d reviews, want %d of each",
			got.Code, len(items), reviews, objects)
	}
	if left := len(server.ObjectsOf(mapsResource)); left > 0 {
		t.Errorf("the deletion of a collection must leave no objects, got %d", left)
	}
}

// TestReviewsOfGeneratedNames shows that all reviews of one creation get the same object, even if others are created
// meanwhile.
func TestReviewsOfGeneratedNames(t *testing.T) {
	server := memapi.New()
	p := newPlayer(t, "http://mem", server)
	var seen []string
	server.AddReviewer(reviewerFunc(func(_ bool, r *admissionv1.AdmissionRequest) {
		var object struct {
			Metadata struct{ Name, UID string } `json:"metadata"`
		}
		if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
			t.Error(err)
		}
		if seen = append(seen, object.Metadata.Name+" "+object.Metadata.UID); len(seen) == 1 {
			server.Put(
				mapsResource,
				map[string]any{"metadata": map[string]any{"namespace": "default", "name": "other"}},
			)
		}
	}), always)
	got := p.play(request{method: http.MethodPost, kind: configmaps, contentType: jsonContentType,
		body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`})
	if got.Code != http.StatusCreated {
		t.Fatalf("creating an object with generateName: got code %d: %v", got.Code, got.Body)
	}
	for _, object := range server.ObjectsOf(mapsResource) {
		metadata, _ := object["metadata"].(map[string]any)
		if metadata["name"] == "other" {
			continue
		}
		is := fmt.Sprint(metadata["name"], " ", metadata["uid"])
		if d := cmp.Diff([]string{is, is}, seen); d != "" {
			t.Errorf("the reviews must be of the stored object (-want, +got):\n%s", d)
		}
	}
}

// TestReviewerPanics shows that a reviewer that panics does not leave the server locked.
func TestReviewerPanics(t *testing.T) {
	server := memapi.New()
	server.AddReviewer(reviewerFunc(func(bool, *admissionv1.AdmissionRequest) { panic("a bug") }), always)
	p := newPlayer(t, "http://mem", server)
	func() {
		defer func() {
			if problem := recover(); problem != "a bug" {
				t.Errorf("the panic of the reviewer must reach the client, got %v", problem)
			}
		}()
		p.play(request{method: http.MethodPost, kind: configmaps, contentType: jsonContentType,
			body: object(configmaps, "a", "", content(configmaps, "x"))})
	}()
	if got := server.ObjectsOf(mapsResource); len(got) > 0 {
		t.Errorf("a creation whose reviewer panics must not be stored, got %v", got)
	}
}
