package memapi

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CollectGarbage has objects deleted whose owners are gone, as kube-controller-manager does: in the background, in the
// foreground, or orphaned, as the deletion asked for. It happens so long after each change that matters; with 0 before
// the answer to the request that led to it. Nothing is collected unless this was called.
func (s *Server) CollectGarbage(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collector = &collector{after: after}
	s.litter()
}

// collector is the state of the garbage collection.
type collector struct {
	after time.Duration
	due   bool // a run is ahead, or under way
}

// noticed has the garbage collected that a change has left.
func (s *Server) noticed(before, after map[string]any) {
	switch {
	case s.collector == nil || s.collector.due:
	case after == nil, metadataOf(after)["ownerReferences"] != nil, metadataOf(after)["deletionTimestamp"] != nil,
		before != nil && metadataOf(before)["ownerReferences"] != nil:
		s.litter()
	}
}

func (s *Server) litter() {
	s.collector.due = true
	if s.collector.after == 0 {
		s.collect()
		return
	}
	time.AfterFunc(s.collector.after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.collect()
	})
}

// collect goes over all objects until there is nothing more to do.
func (s *Server) collect() {
	for more := true; more; {
		more = false
		for _, t := range s.everything() {
			if object, ok := s.objects[t.groupResource()][t.key()]; ok {
				more = s.tend(t, object) || more
			}
		}
	}
	s.collector.due = false
}

// everything is all objects there are, in one order, but for events.
func (s *Server) everything() []target { return s.all(false) }

func (s *Server) all(withEvents bool) []target {
	var all []target
	seen := map[schema.GroupResource]bool{}
	for _, r := range s.resources {
		if seen[r.groupResource()] || r.Plural == "events" && !withEvents {
			continue
		}
		seen[r.groupResource()] = true
		for _, object := range s.objects[r.groupResource()] {
			namespace, _ := metadataOf(object)["namespace"].(string)
			name, _ := metadataOf(object)["name"].(string)
			t := s.target(r, namespace, name)
			t.manager = "kube-controller-manager"
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b target) int {
		return cmp.Or(
			cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural), cmp.Compare(a.key(), b.key()),
		)
	})
	return all
}

// tend does what is to be done about one object, and tells whether there was anything.
func (s *Server) tend(t target, object map[string]any) bool {
	finalizers, _ := metadataOf(object)["finalizers"].([]any)
	dying := metadataOf(object)["deletionTimestamp"] != nil
	switch {
	case dying && slices.Contains(finalizers, any(metav1.FinalizerOrphanDependents)):
		for _, one := range s.dependents(object) {
			s.disown(one, func(ref map[string]any) bool { return ref["uid"] != metadataOf(object)["uid"] })
		}
		s.release(t, metav1.FinalizerOrphanDependents)
		return true
	case dying && slices.Contains(finalizers, any(metav1.FinalizerDeleteDependents)):
		if slices.ContainsFunc(s.dependents(object), func(one target) bool { return s.blocks(one, object) }) {
			return false
		}
		s.release(t, metav1.FinalizerDeleteDependents)
		return true
	case dying:
		return false
	default:
		return s.judge(t, object)
	}
}

// judge decides about an object with owners.
func (s *Server) judge(t target, object map[string]any) bool {
	standing := map[any]ownership{}
	count := map[ownership]int{}
	for _, ref := range referencesOf(object) {
		standing[ref["uid"]] = s.ownership(t, ref)
		count[standing[ref["uid"]]]++
	}
	policy := metav1.DeletePropagationBackground
	switch gone := count[absent] + count[waiting]; {
	case count[unclear] > 0, gone == 0:
		return false
	case count[solid] > 0:
		s.disown(t, func(ref map[string]any) bool { return standing[ref["uid"]] == solid })
		return true
	case count[waiting] > 0 && len(s.dependents(object)) > 0:
		policy = metav1.DeletePropagationForeground
		s.unblock(t, object)
	default:
		finalizers, _ := metadataOf(object)["finalizers"].([]any)
		if slices.Contains(finalizers, any(metav1.FinalizerOrphanDependents)) {
			policy = metav1.DeletePropagationOrphan
		} else if slices.Contains(finalizers, any(metav1.FinalizerDeleteDependents)) {
			policy = metav1.DeletePropagationForeground
		}
	}
	_, err := s.delete(t, &metav1.DeleteOptions{PropagationPolicy: &policy})
	return err == nil
}
