// Package discovery says what a selector means on this cluster now: it reads how users name resources, asks the API
// server what there is, and decides which of it is served.
//
// It is apart because these are rules on names alone, and the same for handlers of all families. It never watches the
// objects of a resource and never starts anything; an Inquiry keeps what it was told for one round only.
//
// Neighbours: package orchestration asks again whenever something may have changed, as the CRDWatcher tells; facade
// hands the spellings down.
package discovery
