// Not part of the public API.
//
// Package inspection serves the state of an operator over HTTP: explanations why a handler was or was not called, as
// JSON or as text, and optionally the console and profiles of the process. [NewHandler] returns the HTTP handler, and
// [Serve] listens.
//
// The [Console] is a page that shows the kinds that the operator serves, the state of its objects, the retries that
// wait, and its peers. An [Overview] summarizes each object: its state in one word, the last decision in one sentence,
// and the waiting retries. Problems come first. The page consists of one document, one style and one script, which need
// no build and load nothing from other hosts.
//
// It only reads. It sends no requests to the API server, and shows no values that package journal does not have.
// Everyone who can connect to its address can read it. So it listens on the loopback interface by default, and there it
// rejects requests for other host names: otherwise, a web page could read it by a browser.
//
// Package journal has the answers. Package commandline sends the requests of the command explain, and package facade
// starts the server.
package inspection
