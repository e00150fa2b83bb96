package namespaces

import "github.com/kopf-runtime/kopf-runtime/reconcilers/live"

// Everywhere stands for the whole cluster in a [LiveNamespaces].
const Everywhere = ""

// LiveNamespaces is the current set of served namespaces: only [Everywhere] for the whole cluster.
type LiveNamespaces = live.Set[string]

// NewLive returns a set of these namespaces. Without names, the set is unknown until its first change.
func NewLive(names ...string) *LiveNamespaces { return live.NewSet(names...) }
