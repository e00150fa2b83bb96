// Package scenarios is what contenders are measured by: each scenario is a list of phases that one operator goes
// through, and in each round all contenders take their turn, so that whatever else the machine does hits all of them.
//
// It is apart because it alone knows contenders, objects and figures together.
//
// Neighbours: package cluster has the objects, package process the operators, package figures what comes out.
package scenarios
