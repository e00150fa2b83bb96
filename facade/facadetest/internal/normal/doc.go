// Not part of the public API.
//
// Package normal shows objects without what differs from run to run, so that two runs can be compared: uids, versions,
// times, generations, and the ends of generated names.
//
// It is apart because all of the test kit that compares runs must agree on that. It never hides what an operator
// decides: whether there is a time, and whose uid it is, remains to be seen.
//
// Neighbours: facadetest and its explorer compare by it. What two servers answer is compared by the tests of memapi.
package normal
