// Not part of the public API.
//
// Package defaults fills in the defaults of an operator's settings, and finds the mistakes in them.
//
// Package facade declares the settings for users, and says which fields have which default. Sections with rules of
// their own have the same fields here, so that they can be converted: [Peering], [Persistence]. A wrong field does
// not end the checks, so that all mistakes can be reported at once.
//
// A storage has rules of its own, so it is asked: it gets an empty patch, and the places that it fills are checked.
// Package reviews has the settings of admission.
package defaults
