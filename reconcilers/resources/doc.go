// Package resources says what users mean by the names of kinds: it reads their spellings, asks the API server what
// there is, and decides which of it is served.
//
// It is apart because these are rules on names alone, and the same for handlers of all families. It never watches or
// starts anything, and keeps no state but what it is given.
//
// Neighbours: package reconcilers above it serves the resources; facade hands the spellings down.
package resources
