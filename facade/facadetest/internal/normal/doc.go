// Not part of the public API.
//
// Package normal removes from objects the values that differ from run to run, so that two runs can be compared: uids,
// versions, times, generations, and the suffixes of generated names. [NewNames] collects the uids and names of a run;
// [Names.NormalizeObject] and [Names.NormalizeText] replace them.
//
// It is separate because all parts of the test kit that compare runs must agree on these values: golden files and the
// explorer. It never hides decisions of an operator: a time is still visible as a time, and a uid as that of its
// object. The tests of memapi compare the responses of two servers by their own rules.
package normal
