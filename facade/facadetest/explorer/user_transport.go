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

// otherClientAnnotation is the annotation that marks a write of another client. It is not part of the essence, so the
// write does not call handlers.
const otherClientAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// createdObject is an object that the play has created.
type createdObject struct{ path, uid, label string }

// userTransport is the transport of the play's client.
type userTransport struct {
	environment *environment
	server      *memapi.Server
}

// RoundTrip sends a request and records the object that it creates. Its line in the history is inserted at the time of
// the request, because the operator can react before the answer arrives here.
func (p *userTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p.environment.mu.Lock()
	place := len(p.environment.run.lines)
	p.environment.mu.Unlock()
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
	p.environment.mu.Lock()
	defer p.environment.mu.Unlock()
	p.environment.lastActivity = time.Now()
	path, object := r.URL.Path, unstructured.Unstructured{}
	made := response.StatusCode == http.StatusCreated && json.Unmarshal(data, &object.Object) == nil
	if made && r.Method == http.MethodPost {
		path += "/" + object.GetName()
	}
	p.environment.run.insertAt(place, p.environment.elapsedTime(), "people",
		fmt.Sprintf("%s %s: %d", verbs[r.Method], shortPath(path), response.StatusCode))
	if made {
		p.environment.run.createdObjects = append(p.environment.run.createdObjects, createdObject{
			path: path, uid: string(object.GetUID()), label: p.environment.names.labelOf(&object),
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
func (w *environment) sendRequest(method, path string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	r, err := http.NewRequestWithContext(w.tb.Context(), method, "http://mem"+path, nil)
	if err != nil {
		w.tb.Fatalf("making a request for %s: %v", path, err)
	}
	response, err := (&userTransport{environment: w, server: w.server}).RoundTrip(r)
	if err != nil {
		w.tb.Fatalf("sending a request for %s: %v", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < http.StatusBadRequest {
		if err := json.NewDecoder(response.Body).Decode(&object.Object); err != nil {
			w.tb.Fatalf("reading the answer for %s: %v", path, err)
		}
	}
	return object
}

// objectState returns the uid and the finalizers of the object at a path.
func (w *environment) objectState(path string) (uid string, finalizers []string) {
	object := w.sendRequest(http.MethodGet, path)
	return string(object.GetUID()), object.GetFinalizers()
}

// editAsOther changes the object of a request like another client. Without [Scenario].Foreign, it only adds an
// annotation, which the operator must not remove.
func (w *environment) editAsOther(r memapi.Request) {
	w.server.Edit(r.Resource, r.Namespace, r.Name, func(object map[string]any) {
		o := unstructured.Unstructured{Object: object}
		w.mu.Lock()
		defer w.mu.Unlock()
		one := edit{uid: string(o.GetUID()), label: w.names.labelWithKind(r.Resource.Kind, &o),
			isAfterPlay: w.run.complete}
		w.run.noteAt(w.elapsedTime(), "other", "changes "+one.label)
		if w.scenario.Foreign != nil {
			w.run.hasForeignChanges = true
			w.scenario.Foreign(&o)
			return
		}
		w.run.foreignEdits = append(w.run.foreignEdits, one)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[otherClientAnnotation] = "somebody's"
		o.SetAnnotations(annotations)
	})
	// An object that does not exist yet cannot be changed by other clients.
}

// noteFinalizers records the objects to which the operator has added finalizers. Their deletion cannot go unnoticed.
func (w *environment) noteFinalizers(r memapi.Request) {
	object := unstructured.Unstructured{Object: w.server.Object(r.Resource, r.Namespace, r.Name)}
	if object.Object == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(object.GetFinalizers()) > 0 {
		w.run.objectsWithFinalizers[w.names.labelOf(&object)] = true
	}
}
