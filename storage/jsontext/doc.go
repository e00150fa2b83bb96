// Not part of the public API.
//
// Package jsontext has JSON objects that come as texts, and that are often needed as texts alone: their values are
// decoded when somebody asks for them, once for all who do.
//
// It is apart because it must not know what the objects are. It never changes a text, and it never encodes anything.
//
// Neighbours: webhooks/review brings the objects of reviews in, reconcilers/compact those of caches, and package facade
// decodes Go types from the texts.
package jsontext
