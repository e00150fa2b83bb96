package journal

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// maxReplicas is how many replicas a fact lists.
const maxReplicas = 10

// rangeFacts returns which replica handles the object, if replicas share the objects. The uid is empty for an object
// that this process has not seen.
func (s OperatorState) rangeFacts(uid types.UID) []string {
	shared := s.Sharing
	switch {
	case shared == nil:
		return nil
	case shared.Elected != "":
		return []string{fmt.Sprintf("Replica %s handles all objects until it ends. %s", shared.Elected,
			howToExplain(shared.Elected))}
	case shared.Count == 0:
		return nil // the Leases are not read yet, which the standby says
	case uid == "":
		return []string{s.unknownRangeFact()}
	}
	own := sharding.Range{Index: sharding.IndexOf(uid, shared.Count), Count: shared.Count}
	return []string{fmt.Sprintf("The object belongs to range %s. %s", own, holderFact(*shared, own.Index))}
}

// holderFact returns which replica holds a range.
func holderFact(shared sharding.Status, index int) string {
	for _, one := range shared.Unowned {
		if one.Index == index {
			return "No replica has held this range since " + strings.TrimPrefix(formatTime(one.Since), "at ") +
				": no handlers are called until one acquires it."
		}
	}
	switch {
	case slices.Contains(shared.Open, index) && !shared.AwaitsLayout:
		return "This replica holds the range."
	case slices.Contains(shared.Own, index) && !shared.AwaitsLayout:
		return "This replica is acquiring or leaving the range: no handlers are called at the moment."
	}
	for _, one := range shared.Replicas {
		if slices.Contains(one.Ranges, index) && one.Identity != shared.Identity {
			return fmt.Sprintf("Replica %s holds the range, so this one does not handle the object. %s", one.Identity,
				howToExplain(one.Identity))
		}
	}
	return "It is moving between replicas."
}

// unknownRangeFact returns the fact about an object with an unknown uid: which replicas there are.
func (s OperatorState) unknownRangeFact() string {
	var others []string
	for _, one := range s.Sharing.Replicas {
		if one.Identity != s.Sharing.Identity && len(one.Ranges) > 0 {
			others = append(others, podOf(one.Identity))
		}
	}
	if len(s.Sharing.Unowned) == 0 && len(others) == 0 {
		return fmt.Sprintf("This replica holds all %d ranges.", s.Sharing.Count)
	}
	text := fmt.Sprintf("The replicas share the objects in %d ranges, by the uid, which is not known here: the object "+
		"may belong to a range of another replica.", s.Sharing.Count)
	if n := len(s.Sharing.Unowned); n > 0 {
		text += fmt.Sprintf(" No replica holds %d of the ranges.", n)
	}
	if len(others) > 0 {
		more := ""
		if len(others) > maxReplicas {
			others, more = others[:maxReplicas], " and others; the command top lists them"
		}
		text += " Repeat the command explain there, such as by kubectl exec: " + strings.Join(others, ", ") + more + "."
	}
	return text
}

// howToExplain returns how to get the explanation of another replica.
func howToExplain(identity string) string {
	return fmt.Sprintf("Repeat the command explain there, such as by kubectl exec %s.", podOf(identity))
}

// podOf returns the part of an identity that is the name of the pod or the machine. The rest is new with each start.
func podOf(identity string) string {
	if at := strings.LastIndexByte(identity, '_'); at > 0 {
		return identity[:at]
	}
	return identity
}
