// Package session plays an example: it installs its kind, runs its operator, applies its object, shows what the
// operator says, and on request changes and deletes the object and checks that a handler fired each time.
//
// It stands apart from the command so that it can be tested with programs that only pretend to be an operator and a
// cluster. It never starts a control plane: it is given one that runs.
//
// Its neighbours are package controlplane, which makes the cluster, and package process, which ends the programs.
package session
