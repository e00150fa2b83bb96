// Package scenarios defines the measurements: each scenario is a list of phases for one operator. In each round all
// contenders take turns, so that other load on the machine affects all of them.
//
// It is separate because only this package combines contenders, objects and figures.
//
// Neighbours: package cluster manages the objects, package process the operators, package figures the results.
package scenarios
