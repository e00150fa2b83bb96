// Not part of the public API.
//
// Package journal records in memory, within limits, which decisions one operator made about each object.
// [Journal.Explain] answers why a handler was called or not.
//
// The steps of a pass record their findings through [KindJournal], [ObjectJournal] and [Draft], whether or not a user
// will ask. The journal never decides anything, and sends no requests to the API server. It keeps no objects and no
// secret values: of Secrets and redacted fields it keeps paths only, and no error texts.
//
// Packages changes, events, background and controller write to the journal. Package facade serves the explanations as
// JSON, and prints them.
package journal
