// Not part of the public API.
//
// Package annotating sets the annotations that control the handling of one object, on request of a user. [Find]
// resolves the kind as kubectl does and reads the object; its methods request another run of the handlers, pause the
// object or end the pause, and wait for the answer of the operator.
//
// It needs no running operator, and does not decide whether one handles the object. The engine acts on the annotations:
// see packages storage/controls and reconcilers/changes. Package commandline has the flags.
package annotating
