// Not part of the public API.
//
// Package rawclient sends requests for single objects to the API server, and gives the answers as they are.
//
// It is apart because it is about requests alone. The clients of controller-runtime and client-go read an answer three
// times over before anybody decodes it: to see what it is, to see whether it is well-formed, and to find its end. It
// never decodes anything but refusals. What client-go sends again, as a refusal says when, is sent again.
//
// Neighbours: package patching decides what is sent, and makes objects of the answers; package informers asks for all
// objects of a resource.
package rawclient
