// Not part of the public API.
//
// Package rawclient sends requests for single objects to the API server, and returns the answers as bytes. [Client] has
// Get and Patch.
//
// The clients of controller-runtime and client-go read an answer three times before it is decoded: to detect its type,
// to validate the JSON, and to find its end. This package decodes only error responses. Requests that the API server
// refuses with a delay are retried by client-go.
//
// Package patching decides what to send, and decodes the answers. Package informers lists and watches all objects of a
// resource.
package rawclient
