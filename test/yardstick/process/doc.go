// Package process runs an operator as a program of its own, and measures it from outside: CPU and memory as Linux
// counts them in /proc, the same for every language. What only the operator can know, it tells in lines of its
// output, by [Tell].
//
// It is apart because it knows nothing of Kubernetes. It needs Linux; elsewhere there are no figures.
//
// Neighbours: package scenarios decides what is run and when it is measured.
package process
