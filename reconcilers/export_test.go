package reconcilers

import "sigs.k8s.io/controller-runtime/pkg/manager"

// Claimed tells whether the process knows anything of operators of the manager.
func Claimed(m manager.Manager) bool { return claimed(m.Elected()) }

// claimed tells whether anything is known of operators of the manager with this channel.
func claimed(m elected) bool {
	byManager.mu.Lock()
	defer byManager.mu.Unlock()
	_, known := byManager.claims[m]
	return known
}
