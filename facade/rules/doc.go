// Package rules is about conditions on objects that are written once, as CEL, and hold in three places: in the
// operator, as a handler of admission; in the API server, as a ValidatingAdmissionPolicy, which works while no operator
// runs; and in unit tests, as a function in plain Go.
//
//	var grows = rules.New("size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size",
//		"the size never shrinks")
//
//	rules.Add(dbs, grows)
//	policy, binding, err := rules.Policy("databases.example.org", kinds, grows)
//
// It is a module of its own, as it brings the CEL of the API server with it, k8s.io/apiserver in the version of the
// other Kubernetes libraries: whoever does not import it has none of that. It never talks to a cluster.
//
// # What an expression knows
//
// It knows object, as it is to be, and oldObject, as it is; what else policies know, such as request and authorizer,
// cannot be had in all three places. In a creation, oldObject is null; in a deletion, object is. Fields that an object
// does not have cannot be read: ask by has(object.spec.size) first. An expression that ends in an error, or costs more
// than the API server allows, denies the request.
//
// [Rule.Check] holds expressions to a Go type: unknown fields and wrong types are errors. Values that encode themselves
// may be anything, times and bytes are texts.
//
// # Reading what is null
//
// Whether an expression reads a field of an object that is null is decided by going through its parsed form, with what
// is known of every part while oldObject, or object, is null. That finds all such reads, whatever the other values are,
// which no number of tried objects could. It does not know all that is true: guard by oldObject == null or oldObject !=
// null, with &&, || or ?:.
//
// Neighbours: package facade has the handlers of admission, one of which is made of a rule; package conformance holds
// policies and rules to each other.
package rules
