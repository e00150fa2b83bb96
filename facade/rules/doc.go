// Package rules defines conditions on objects. A condition is written once, in CEL, and enforced in three places: by
// the operator, in an admission handler; by the API server, in a ValidatingAdmissionPolicy, which also works while no
// operator runs; and in unit tests, by a plain Go function.
//
//	var grows = rules.New("size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size",
//		"the size never shrinks")
//
//	rules.Add(dbs, grows)
//	policy, binding, err := rules.Policy("databases.example.org", kinds, grows)
//
// The package is a separate module, because it depends on the CEL code of the API server, k8s.io/apiserver, in the
// version of the other Kubernetes libraries. Programs that do not import it do not have this dependency. It never
// contacts a cluster.
//
// # Variables of an expression
//
// The variables are object, the new state, and oldObject, the stored one. Other variables of policies, such as request
// and authorizer, do not exist in all three places. In a creation, oldObject is null; in a deletion, object is null.
// Reading a missing field is an error: check has(object.spec.size) first. An expression that ends in an error, or costs
// more than the API server allows, denies the request.
//
// [Rule.Check] compares expressions with a Go type: unknown fields and wrong types are errors. Values with their own
// JSON encoding can have any type; times and bytes are strings.
//
// # Null objects
//
// New rejects an expression that can read a field of an object while that object is null. It evaluates the parsed
// expression symbolically, with oldObject or object as null and all other values unknown. This finds all such reads,
// which no number of sample objects could. It does not recognize every correct guard: use oldObject == null or
// oldObject != null, with &&, || or ?:.
//
// Package facade has the admission handlers. Package conformance compares policies and rules.
package rules
