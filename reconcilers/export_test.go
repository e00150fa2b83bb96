package reconcilers

import "sigs.k8s.io/controller-runtime/pkg/manager"

// Claimed returns whether operators of the manager have claims in this process.
func Claimed(m manager.Manager) bool { return claimed(m.Elected()) }

// claimed returns whether there are claims for the manager with this channel.
func claimed(m elected) bool {
	claimsByManager.mu.Lock()
	defer claimsByManager.mu.Unlock()
	_, known := claimsByManager.claims[m]
	return known
}
