package reconcilers

import "sigs.k8s.io/controller-runtime/pkg/manager"

// Claimed returns whether operators of the manager have claims in this process.
func Claimed(m manager.Manager) bool { return claimed(m.Elected()) }

// claimed returns whether there are claims for the manager with this channel.
func claimed(m elected) bool {
	byManager.mu.Lock()
	defer byManager.mu.Unlock()
	_, known := byManager.claims[m]
	return known
}
