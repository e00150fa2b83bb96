// Not part of the public API.
//
// Package transport wraps the HTTP requests that an operator sends to the API server. [RequestLimits] limits the time
// of requests and watches, [RequestRetries] repeats requests after transient failures as Kopf does, and [Fence] refuses
// requests when another process may act. [Wrap] puts them around a client.
//
// The package deals with single HTTP requests, and does not depend on objects or handlers. A watch that it ends looks
// like one that the server has closed, so that the client continues it from the last event. It never repeats a request
// that the server refused permanently; packages above decide when to retry a failed pass.
//
// Package reconcilers wraps the clients of an operator, and package controller those of its informers. Packages health
// and metrics have transports of their own.
package transport
