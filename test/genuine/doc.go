// Package genuine has the genuine Kopf at hand: a Python environment with the versions of requirements.txt.
//
// It is apart because several suites need it. It knows nothing of operators, and starts none.
//
// Neighbours: test/interop compares Kopf with us, and test/chaos mixes both.
package genuine
