// Not part of the public API.
//
// Package requirements has what filters demand of objects as data, where it can be said so: for those who check it
// elsewhere, as API servers do for admission, and in words, for people.
//
// It stands apart because filters themselves are functions, and it is they that decide: whoever reads requirements may
// ask for less than everything, and never decides by them.
//
// Neighbours: reconcilers/handlers keeps them with each handler, webhooks/admission says them in CEL.
package requirements
