package explorer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// userTransport is the transport of the play's client.
type userTransport struct {
	environment *environment
	server      *memapi.Server
}

// RoundTrip sends a request and records the object that it creates. Its line in the history is inserted at the time of
// the request, because the operator can react before the answer arrives here.
func (p *userTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	request, isForObjects, err := p.server.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	p.environment.mu.Lock()
	place := len(p.environment.run.lines)
	p.environment.mu.Unlock()
	response, err := p.server.RoundTrip(r)
	if err != nil || !isForObjects || isRead(request) {
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
	p.environment.run.insertAt(place, p.environment.elapsedTime(), "people",
		fmt.Sprintf("%s: %d", shownAs(request, subjectOf(request)), response.StatusCode))
	object := &unstructured.Unstructured{}
	if response.StatusCode == http.StatusCreated && json.Unmarshal(data, &object.Object) == nil {
		p.environment.run.createdObjects = append(p.environment.run.createdObjects,
			createdObject{object, p.environment.names.labelOf(object)})
	}
	return response, nil
}

// storedState returns an object as it is stored now. It returns nil if the object is gone, or another one has its name.
func (w *environment) storedState(one createdObject) *unstructured.Unstructured {
	stored := one.object.DeepCopy()
	err := w.client.Get(w.tb.Context(), client.ObjectKeyFromObject(stored), stored)
	if err != nil || stored.GetUID() != one.object.GetUID() {
		return nil
	}
	return stored
}

// editAsOther changes the object of a request like another client. Without [Scenario].Foreign, it only adds an
// annotation, which the operator must not remove.
func (w *environment) editAsOther(r memapi.Request) {
	w.server.Edit(r.Resource, r.Namespace, r.Name, func(object map[string]any) {
		o := unstructured.Unstructured{Object: object}
		w.mu.Lock()
		defer w.mu.Unlock()
		one := edit{label: w.names.labelWithKind(r.Resource.Kind, &o), isAfterPlay: w.run.complete}
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
