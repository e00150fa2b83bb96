// Package hierarchies makes objects the children of another one, in memory: it sets their owner references, names,
// namespaces and labels, before they are created. In a handler, c.Adopt does all of it for the handled object.
//
// It stands apart because it is about any objects, handled or not: functions of no operator can use it as well. It
// never talks to a cluster.
//
// Children are typed objects, [unstructured.Unstructured], mappings of JSON values, lists of the API such as a
// [corev1.PodList], and slices, arrays, pointers and iterators of all of these, nested at will. Nil among them is
// skipped. Anything else is an error, which says where it stands; what comes before it is changed by then.
//
// Neighbours: package facade calls it for handlers; package codec reads the paths of nested fields.
package hierarchies
