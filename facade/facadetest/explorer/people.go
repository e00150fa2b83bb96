package explorer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// anybody is the annotation that marks a write of another client. It is not part of the essence, so the write does not
// call handlers.
const anybody = "kubectl.kubernetes.io/last-applied-configuration"

// created is an object that the play has created.
type created struct{ path, uid, label string }

// people is the transport of the play's client.
type people struct {
	world  *world
	server *memapi.Server
}

// RoundTrip sends a request and records the object that it creates. Its line in the history is inserted at the time of
// the request, because the operator can react before the answer arrives here.
func (p *people) RoundTrip(r *http.Request) (*http.Response, error) {
	p.world.mu.Lock()
	place := len(p.world.run.lines)
	p.world.mu.Unlock()
	response, err := p.server.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet {
		return response, err
	}
	// The body is read for the recorded object, so the client gets a copy of it.
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.world.pulse = time.Now()
	path, object := r.URL.Path, unstructured.Unstructured{}
	made := response.StatusCode == http.StatusCreated && json.Unmarshal(data, &object.Object) == nil
	if made && r.Method == http.MethodPost {
		path += "/" + object.GetName()
	}
	p.world.run.insertAt(place, p.world.elapsedTime(), "people",
		fmt.Sprintf("%s %s: %d", verbs[r.Method], shortPath(path), response.StatusCode))
	if made {
		p.world.run.created = append(p.world.run.created, created{
			path: path, uid: string(object.GetUID()), label: p.world.names.labelOf(&object),
		})
	}
	return response, nil
}

// verbs maps the methods of writes to the verbs that a history shows.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// shortPath returns a path without the API version and the default namespace, for histories.
func shortPath(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2
	if parts[0] == "apis" {
		skip = 3
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		if parts[1] == "default" {
			parts = parts[2:]
		} else {
			parts = append([]string{parts[1]}, parts[2:]...)
		}
	}
	return strings.Join(parts, "/")
}

// sendRequest sends a request of the play without a body, and returns the object of the answer. The object is empty if
// the request fails.
func (w *world) sendRequest(method, path string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	r, err := http.NewRequestWithContext(w.bench.Context(), method, "http://mem"+path, nil)
	if err != nil {
		w.bench.Fatalf("making a request for %s: %v", path, err)
	}
	response, err := (&people{world: w, server: w.server}).RoundTrip(r)
	if err != nil {
		w.bench.Fatalf("sending a request for %s: %v", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < http.StatusBadRequest {
		if err := json.NewDecoder(response.Body).Decode(&object.Object); err != nil {
			w.bench.Fatalf("reading the answer for %s: %v", path, err)
		}
	}
	return object
}

// objectState returns the uid and the finalizers of the object at a path.
func (w *world) objectState(path string) (uid string, finalizers []string) {
	object := w.sendRequest(http.MethodGet, path)
	return string(object.GetUID()), object.GetFinalizers()
}

// editAsOther changes the object of a request like another client. Without [Scenario].Foreign, it only adds an
// annotation, which the operator must not remove.
func (w *world) editAsOther(r memapi.Request) {
	w.server.Edit(r.Resource, r.Namespace, r.Name, func(object map[string]any) {
		o := unstructured.Unstructured{Object: object}
		w.mu.Lock()
		defer w.mu.Unlock()
		one := edit{uid: string(o.GetUID()), label: w.names.labelWithKind(r.Resource.Kind, &o), late: w.run.complete}
		w.run.noteAt(w.elapsedTime(), "other", "changes "+one.label)
		if w.scenario.Foreign != nil {
			w.run.strange = true
			w.scenario.Foreign(&o)
			return
		}
		w.run.foreign = append(w.run.foreign, one)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[anybody] = "somebody's"
		o.SetAnnotations(annotations)
	})
	// An object that does not exist yet cannot be changed by other clients.
}

// noteFinalizers records the objects to which the operator has added finalizers. Their deletion cannot go unnoticed.
func (w *world) noteFinalizers(r memapi.Request) {
	object := unstructured.Unstructured{Object: w.server.Object(r.Resource, r.Namespace, r.Name)}
	if object.Object == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(object.GetFinalizers()) > 0 {
		w.run.held[w.names.labelOf(&object)] = true
	}
}
