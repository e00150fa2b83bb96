// Package hierarchies turns objects into children of another object, in memory: it sets their owner references, names,
// namespaces and labels before they are created. It never sends requests, and works on any objects, also outside of
// operators. The main entry point is [Adopt]; in a handler, c.Adopt calls it for the handled object. Declared children,
// which the operator creates, updates and deletes, belong to Change.Ensure of package facade.
//
// Children are typed objects, [unstructured.Unstructured], mappings of JSON values, lists of the API such as a
// [corev1.PodList], and slices, arrays, pointers and iterators of all of these, in any nesting. Nil children are
// skipped. Any other value is an error that contains its position; children before it are already changed.
package hierarchies
