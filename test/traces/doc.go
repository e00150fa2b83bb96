// Package traces records every request that a whole operator sends in some thirty scenarios, and compares each trace
// with a golden file in testdata. The files show what the operator sends, and when: read one to learn a feature's
// cost.
//
// A [Story] runs operators through the public facade against the API server in memory, on virtual time. A change of a
// golden file is a change of behaviour: explain it in the commit.
//
// The package is separate because it guards behaviour during changes of the structure. It plays one course of each
// scenario, without chance: test/explorer plays all courses, and the vectors compare with the original Kopf.
package traces
