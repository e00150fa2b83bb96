package patching_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	kjson "sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/patching"
)

// server is an API server with one object, and with configurable failures.
type server struct {
	*memapi.Server
	resource        memapi.Resource
	namespace, name string
	connection      *memapi.Connection
	bodiesBefore    []map[string]any // the object before each write, or nil

	// Changes by others before the n-th write, as merge patches of the whole object. A function can do more.
	interferences []any
	interfere     func(n int)
	// An HTTP status or an error instead of the n-th write. Nil or a missing entry serves the write.
	failures []any
	// An HTTP status instead of all reads.
	failGet int
}

// write is one PATCH request, with the status of its refusal.
type write struct {
	URL     string
	Type    string
	Payload any
	Status  int
	Manager string
	Before  map[string]any `json:"-"` // the object before the request, or nil
}

var kopfExampleResource = memapi.Resource{
	Group: kopfExampleKind.Group, Version: kopfExampleKind.Version, Kind: kopfExampleKind.Kind, Plural: "kopfexamples",
	Namespaced:        true,
	StatusSubresource: true,
}

func serverOf(body map[string]any) *server { return serve(kopfExampleResource, body) }

// serve returns a server with the object at its own resource version.
func serve(resource memapi.Resource, body map[string]any) *server {
	metadata := body["metadata"].(map[string]any)
	s := &server{Server: memapi.New(), resource: resource, name: metadata["name"].(string)}
	if resource.Namespaced {
		s.namespace = metadata["namespace"].(string)
	}
	s.Install(resource)
	s.load(body)
	s.connection = s.Connect()
	s.connection.Before = func(_ context.Context, r memapi.Request) error { return s.disturb(r) }
	return s
}

// load stores an object with its own resource version.
func (s *server) load(body map[string]any) {
	if err := s.Load(body); err != nil {
		panic(err)
	}
}

// deletionTime is the deletion timestamp of objects.
const deletionTime = "2024-05-06T07:08:09Z"

func (s *server) serveStatus(subresource bool) {
	s.change(func(r *memapi.Resource) { r.StatusSubresource = subresource })
}

// setDeletionTimestamp sets the deletion timestamp without a new resource version, as if the handlers had seen it.
func (s *server) setDeletionTimestamp() {
	body := s.stored()
	body["metadata"].(map[string]any)["deletionTimestamp"] = deletionTime
	s.load(body)
}

// change changes how the resource is served.
func (s *server) change(how func(r *memapi.Resource)) {
	how(&s.resource)
	s.Install(s.resource)
}

func (s *server) disturb(r memapi.Request) error {
	if r.Verb != "patch" {
		if s.failGet != 0 {
			return memapi.NewRefusal(s.failGet)
		}
		return nil
	}
	n := len(s.bodiesBefore)
	if s.interfere != nil {
		s.interfere(n)
	}
	if n < len(s.interferences) && s.interferences[n] != nil {
		s.edit(s.interferences[n])
	}
	s.bodiesBefore = append(s.bodiesBefore, s.stored())
	if n >= len(s.failures) || s.failures[n] == nil {
		return nil
	}
	if code, ok := s.failures[n].(int64); ok {
		return memapi.NewRefusal(int(code))
	}
	return s.failures[n].(error)
}

// interfereFully applies the changes by others that are still due before further writes.
func (s *server) interfereFully() {
	for n := len(s.bodiesBefore); n < len(s.interferences); n++ {
		if s.interferences[n] != nil {
			s.edit(s.interferences[n])
		}
	}
}

// edit applies a merge patch as another client does.
func (s *server) edit(merge any) {
	s.Edit(s.resource, s.namespace, s.name, func(object map[string]any) {
		patched, err := jsonpatch.MergePatch(encode(object), encode(merge))
		if err != nil {
			panic(err)
		}
		clear(object)
		for key, value := range decode(patched).(map[string]any) {
			object[key] = value
		}
	})
}

func (s *server) vanish() { s.Discard(s.resource, s.namespace, s.name) }

// stored returns the present object, or nil.
func (s *server) stored() map[string]any { return s.Object(s.resource, s.namespace, s.name) }

func (s *server) writes() []write {
	var writes []write
	for _, r := range s.connection.Requests() {
		if r.Verb != "patch" {
			continue
		}
		w := write{
			URL: r.Path, Payload: decode(r.Body), Manager: r.Query.Get("fieldManager"),
			Before: s.bodiesBefore[len(writes)],
			Type: map[string]string{
				"application/merge-patch+json": "merge", "application/json-patch+json": "json",
			}[r.ContentType],
		}
		if r.Code >= 400 {
			w.Status = r.Code
		}
		writes = append(writes, w)
	}
	return writes
}

func (s *server) reads() int {
	reads := 0
	for _, r := range s.connection.Requests() {
		if r.Verb == "get" {
			reads++
		}
	}
	return reads
}

func (s *server) client() patching.PatchClient {
	return patching.NewObjectClient(
		memapi.Config(s.connection), &http.Client{Transport: s.connection}, s.resource.GroupVersionResource(),
	)
}

// applyOperations returns a body after the operations of a JSON patch.
func applyOperations(body map[string]any, operations []byte) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return nil, err
	}
	out, err := patch.Apply(encode(body))
	if err != nil {
		return nil, err
	}
	after, ok := decode(out).(map[string]any)
	if !ok {
		return nil, errors.New("the body is not a mapping after the operations")
	}
	return after, nil
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

func decode(data []byte) any {
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		panic(err)
	}
	return out
}
