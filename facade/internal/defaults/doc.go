// Not part of the public API.
//
// Package defaults fills in the default values of an operator's settings and validates them.
//
// Package facade declares the settings for users and passes the default of each field. Sections with rules of their
// own, [Peering] and [Persistence], have the same fields here, so that the types convert to each other. An invalid
// field does not stop the validation, so that the set-up can report all of them at once.
//
// Storages are validated by a probe: they write into an empty patch, and the paths in the patch are checked. Settings
// of admission belong to package reviews.
package defaults
