// Not part of the public API.
//
// Package storages keeps storages that users have written apart from the engine: they get copies of what they are given
// and give copies of what they have, and a panic is an error with the object that it happened with, where the method
// can have one.
//
// The storages of packages storage/diffbase and storage/progress are trusted, and stay as they are.
package storages
