package kopf_test

import (
	"time"
)

// addPeer adds a peer of a higher priority with the given lifetime.
func (s *sharedPeering) addPeer(lifetime int64) {
	s.server.Edit(peerings, "", "shared", func(object map[string]any) {
		object["status"] = map[string]any{"him": map[string]any{
			"priority": int64(9), "lifetime": lifetime, "lastseen": time.Now().UTC().Format(time.RFC3339),
		}}
	})
}
