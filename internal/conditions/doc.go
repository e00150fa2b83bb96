// Not part of the public API.
//
// Package conditions reports the state of an object's handlers as conditions in its status: Ready, Reconciling and
// Stalled, with the generation that they describe, as kubectl wait and kstatus understand them. The entry points are
// [Types.Apply] for the engine, [SetCondition] for conditions of the user's handlers, and [SchemaMisfit] for the schema
// of a kind.
//
// All of them are pure functions of JSON values: they compute the new status from the present one and from the outcomes
// of the handlers. They send no requests and do not read a clock.
//
// Package changes has the outcomes and writes the status. Package controller finds out whether a kind can have
// conditions. The facade sets the conditions of handlers.
package conditions
