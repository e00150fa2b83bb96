// Not part of the public API.
//
// Package namespaces determines which namespaces an operator serves: those that match its [Patterns], until their
// content is deleted. [NamespaceWatcher] watches the namespaces of the cluster, [LiveNamespaces] holds the current set,
// and [NamespaceRule] decides for single names.
//
// The set depends only on names, labels and conditions of namespaces, not on the handled kinds. The package requests
// namespaces only if a pattern needs it. It does not start or stop controllers.
//
// Package controller starts and stops controllers when the set changes. Package reconcilers keeps the set current, also
// while the operator is paused. Package discovery does the same for kinds.
package namespaces
