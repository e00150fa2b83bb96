// Not part of the public API.
//
// Package storages isolates user-supplied storages from the engine. It deep-copies everything they receive and return,
// and turns panics into errors for methods that return an error.
//
// [IsolateDiffbase] and [IsolateProgress] wrap a storage. The storages of packages storage/diffbase and
// storage/progress are trusted and not wrapped. [WithFormerIDs] adds the ids of renamed handlers to any storage.
// [ProbeDiffbase] and [ProbeProgress] find out which fields a storage writes.
package storages
