// Package process runs an operator as a program and measures it from outside: CPU and memory as Linux counts them in
// /proc, the same for every language. Figures that only the operator can measure come as lines of its output.
//
// It is separate because it does not depend on Kubernetes. It needs Linux; elsewhere there are no figures.
//
// Neighbours: package scenarios decides which programs run and when they are measured.
package process
