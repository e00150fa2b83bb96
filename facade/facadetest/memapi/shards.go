package memapi

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shardSelector selects objects by the hash of a field, like a shardSelector in a list or a watch. The zero value
// selects all objects.
type shardSelector struct {
	// field is a field of the metadata, "uid" or "namespace".
	field  string
	ranges []hashRange
}

// hashRange contains the hashes from start on and below end, both hexadecimal numbers as in the request.
type hashRange struct{ start, end string }

// IgnoreShardSelector makes the server ignore the parameter shardSelector, like a real server without the feature gate
// ShardedListAndWatch: lists and watches then have all objects.
func (s *Server) IgnoreShardSelector() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ignoresShards = true
}

// shardRange matches one range of a selector without spaces. Bounds have 16 digits; only the end of all hashes has 17.
var shardRange = regexp.MustCompile(
	`shardRange\(object\.metadata\.(uid|namespace),'(0x[0-9a-f]{16}|0x10{16})','(0x[0-9a-f]{16}|0x10{16})'\)`,
)

// parseShards parses a shardSelector: ranges of one field, joined by "||", with parentheses or without. Like the real
// server, it answers a malformed one with the status 500, but its message does not name the mistake.
func (s *Server) parseShards(text string) (shardSelector, error) {
	if text == "" || s.ignoresShards {
		return shardSelector{}, nil
	}
	var shards shardSelector
	compact := strings.ReplaceAll(strings.Join(strings.Fields(text), ""), `"`, "'")
	// With a letter in the place of each range, only operators and parentheses remain, which are then reduced.
	rest, former := shardRange.ReplaceAllString(compact, "r"), ""
	for rest != former {
		rest, former = strings.NewReplacer("(r)", "r", "r||r", "r").Replace(rest), rest
	}
	isValid := rest == "r"
	for _, found := range shardRange.FindAllStringSubmatch(compact, -1) {
		one := hashRange{found[2], found[3]}
		isValid = isValid && isBelow(one.start, one.end) && (shards.field == "" || shards.field == found[1])
		shards.field, shards.ranges = found[1], append(shards.ranges, one)
	}
	if !isValid {
		return shardSelector{}, internalError(fmt.Errorf("invalid shard selector: %q is not a shardRange() of "+
			"object.metadata.uid or object.metadata.namespace, or several of one field joined by ||", text))
	}
	return shards, nil
}

// isBelow compares two hashes. Only the end of all hashes has more digits than the other ones.
func isBelow(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// matchesObject reports whether an object is in one of the ranges.
func (s shardSelector) matchesObject(object *unstructured.Unstructured) bool {
	if s.field == "" {
		return true
	}
	value := string(object.GetUID())
	if s.field == "namespace" {
		value = object.GetNamespace()
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(value)) // a hash does not fail
	hash := fmt.Sprintf("0x%016x", sum.Sum64())
	for _, r := range s.ranges {
		if !isBelow(hash, r.start) && isBelow(hash, r.end) {
			return true
		}
	}
	return false
}

// addInfo adds the selector to the metadata of a list. The real server does not do so for custom resources, nor for
// answers with metadata only.
func (s shardSelector) addInfo(t target, metadata map[string]any) {
	if s.field == "" || t.schema != nil || t.isMetadataOnly {
		return
	}
	var all []string
	for _, r := range s.ranges {
		all = append(all, fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", s.field, r.start, r.end))
	}
	metadata["shardInfo"] = map[string]any{"selector": strings.Join(all, " || ")}
}
