// Package tools is the module whose go.mod pins the development tools of this
// repository: the linters, the vulnerability check, the runner of the tests, the
// comparison of benchmarks, and d2, which draws the diagrams of the
// documentation.
//
// It stands apart so that what the tools depend on never enters the module
// graph of the operators built on the framework. It never contains the tools
// themselves: `go tool -modfile=test/tools/go.mod NAME` builds and runs one.
//
// Its neighbour apidiff is a small tool of our own.
package tools
