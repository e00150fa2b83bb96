package memapi

import (
	"maps"
	"slices"
)

// storeObject stores an object and does everything that follows from the change.
func (s *Server) storeObject(t target, before, after map[string]any) {
	if t.isDryRun {
		return
	}
	// The former object is not changed, because the history refers to it.
	s.objects[t.groupResource()][t.objectKey()] = after
	s.recordChange(t, before, after, nil)
}

// removeObject removes an object. Watches receive its last state with a new resource version, as from the real server.
func (s *Server) removeObject(t target, before map[string]any) {
	if t.isDryRun {
		return
	}
	delete(s.objects[t.groupResource()], t.objectKey())
	last := cloneObject(before)
	metadataOf(last)["resourceVersion"] = s.nextVersion()
	s.recordChange(t, before, nil, last)
}

// setResourceVersion sets a new resource version. A dry run does not consume one.
func (s *Server) setResourceVersion(t target, metadata map[string]any) {
	if !t.isDryRun {
		metadata["resourceVersion"] = s.nextVersion()
	}
}

// setIdentity sets the uid, the creation time and the first generation.
func (s *Server) setIdentity(t target, metadata map[string]any) {
	metadata["uid"] = uidFor(s.nextNumber())
	metadata["creationTimestamp"] = currentTimestamp()
	delete(metadata, "generation")
	if !t.Plain {
		metadata["generation"] = int64(1)
	}
}

// nextNumber returns a number for a name or a uid that no other object has.
func (s *Server) nextNumber() int {
	s.lastNumber++
	return s.lastNumber
}

// pruneStatus removes status fields that are not in Resource.StatusFields.
func (t target) pruneStatus(object map[string]any) {
	status, ok := object["status"].(map[string]any)
	if !ok || t.StatusFields == nil {
		return
	}
	maps.DeleteFunc(status, func(key string, _ any) bool { return !slices.Contains(t.StatusFields, key) })
}

// recordChange appends a change to the history and wakes up the watches. It also does what follows from the change: it
// updates the served definitions, collects garbage and handles namespaces.
func (s *Server) recordChange(t target, before, after, last map[string]any) {
	s.history = append(s.history, event{
		s.version, t.groupResource(), before, after, last, author{t.manager, t.subresource, t.Version},
	})
	s.trimHistory()
	s.wakeWatches()
	s.updateServedKinds(t, before, after)
	s.collectIfNeeded(before, after)
	s.keepNamespaces(t, before, after)
}

// trimHistory drops the older half once the history has twice the limit. Trimming at every change would copy the whole
// history each time.
func (s *Server) trimHistory() {
	if s.historyLimit == 0 || len(s.history) < 2*s.historyLimit {
		return
	}
	dropped := len(s.history) - s.historyLimit
	s.compactedVersion = s.history[dropped-1].version
	s.history = append([]event(nil), s.history[dropped:]...) // a copy, so that the dropped changes can be freed
}
