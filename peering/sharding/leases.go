package sharding

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Labels and annotations of the Leases.
const (
	// groupLabel is the label of all Leases of one operator. Its value is a digest of the name of the layout Lease.
	groupLabel = "sharding.kopf.dev/group"
	// shardsAnnotation is the number of ranges, on a replica's Lease and on the layout. The layout counts only if its
	// holder has the same number: a client may have edited the holder.
	shardsAnnotation = "sharding.kopf.dev/shards"
	// settlingAnnotation marks a layout that did not exist before. Replicas of another layout may act for some time.
	settlingAnnotation = "sharding.kopf.dev/settling"
	leavingAnnotation  = "sharding.kopf.dev/leaving"
	// pausedAnnotation is on the Lease of a replica that the peers have paused.
	pausedAnnotation = "sharding.kopf.dev/paused"
	loadAnnotation   = "sharding.kopf.dev/load"

	layoutHolder = "shards-" // followed by the number of ranges
)

// mostShards limits the number of ranges in a layout that another client may have edited.
const mostShards = 1 << 16

// releasedSeconds is the lease duration of a Lease that its holder has released, as electors write it. A Lease that
// another client has emptied has another duration.
const releasedSeconds = 1

// lease is a Lease as the core sees it. The values are never changed after they are made.
type lease struct {
	name     string
	uid      string
	version  string
	holder   string // "" if it is free
	replica  string // the name of the holder's own Lease
	seconds  int
	shards   int // of a replica, or of the layout; zero if the layout is not one of ranges
	settling bool
	leaving  bool
	paused   bool
	load     Load
	renewed  time.Time // by the clock of its holder
	object   *coordinationv1.Lease
}

// isReleased reports whether the last holder has released the Lease and does not act any more. A missing Lease is not
// released: another client may have removed it.
func (l *lease) isReleased() bool { return l != nil && l.holder == "" && l.seconds == releasedSeconds }

// duration returns the lease duration within limits, because another client may have changed it.
func (l *lease) duration() time.Duration {
	seconds := min(max(l.seconds, int(leaseDuration/time.Second)), int(longestDuration/time.Second))
	return time.Duration(seconds) * time.Second
}

// view is the content of one list of all Leases.
type view struct {
	// requested and received are local times: the list is not older than the former, nor newer than the latter.
	requested, received time.Time
	layout              *lease // nil if it does not exist, or is not known
	isLayoutKnown       bool
	replicas            map[string]*lease // by name
	ranges              []*lease          // by index; nil if there is no Lease
	obsolete            []*lease          // ranges of other layouts
}

// names has the names of the Leases of one layout.
type names struct {
	layout string
	shards int
}

// group returns the value of the group label.
func (n names) group() string { return digest(n.layout, 8) }

// LeaseSelector returns the label selector of all Leases of the replicas that share objects by this layout Lease.
func LeaseSelector(layout string) string { return groupLabel + "=" + names{layout: layout}.group() }

// replicaOf returns the name of a replica's Lease.
func (n names) replicaOf(identity string) string { return n.layout + "-replica-" + digest(identity, 6) }

// rangeAt returns the name of the Lease of a range.
func (n names) rangeAt(index int) string {
	return fmt.Sprintf("%s-range-%d-%d", n.layout, n.shards, index)
}

// digest returns a short hash in hexadecimal digits.
func digest(text string, size int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:size])
}

// parseView sorts the Leases of a list into the layout, replicas and ranges. Leases with other names are ignored.
func (n names) parseView(items []coordinationv1.Lease) view {
	v := view{replicas: map[string]*lease{}, ranges: make([]*lease, n.shards)}
	owners := map[string]string{} // many ranges have the same holder
	for i := range items {
		l := n.parse(&items[i])
		if l.holder != "" {
			if owners[l.holder] == "" {
				owners[l.holder] = n.replicaOf(l.holder)
			}
			l.replica = owners[l.holder]
		}
		rest, _ := strings.CutPrefix(l.name, n.layout)
		shards, index, isRange := parseRange(rest)
		switch {
		case rest == "":
			v.layout, v.isLayoutKnown = l, true
		case strings.HasPrefix(rest, "-replica-"):
			v.replicas[l.name] = l
		case isRange && shards == n.shards && index < n.shards:
			v.ranges[index] = l
		case isRange:
			v.obsolete = append(v.obsolete, l)
		}
	}
	return v
}

// parseRange parses the part of a name after that of the layout.
func parseRange(rest string) (shards, index int, ok bool) {
	rest, ok = strings.CutPrefix(rest, "-range-")
	first, second, _ := strings.Cut(rest, "-")
	shards, err1 := strconv.Atoi(first)
	index, err2 := strconv.Atoi(second)
	return shards, index, ok && err1 == nil && err2 == nil && shards > 0 && index >= 0
}

// parse returns the Lease for the core. Invalid values of other clients count as missing.
func (n names) parse(object *coordinationv1.Lease) *lease {
	l := &lease{
		name: object.Name, uid: string(object.UID), version: object.ResourceVersion, object: object,
		settling: object.Annotations[settlingAnnotation] != "", leaving: object.Annotations[leavingAnnotation] != "",
		paused: object.Annotations[pausedAnnotation] != "",
	}
	if object.Spec.HolderIdentity != nil {
		l.holder = *object.Spec.HolderIdentity
	}
	if object.Spec.LeaseDurationSeconds != nil {
		l.seconds = int(*object.Spec.LeaseDurationSeconds)
	}
	if object.Spec.RenewTime != nil {
		l.renewed = object.Spec.RenewTime.Time
	}
	l.shards, _ = strconv.Atoi(object.Annotations[shardsAnnotation])
	isShared := l.shards > 0 && l.shards <= mostShards && l.holder == layoutHolder+strconv.Itoa(l.shards)
	if l.name == n.layout && !isShared {
		l.shards = 0
	}
	if text := object.Annotations[loadAnnotation]; text != "" && json.Unmarshal([]byte(text), &l.load) != nil {
		l.load = Load{}
	}
	return l
}

const (
	// leaseDuration is that of replicas: another process is dead if its Lease has not changed for this long. It is also
	// how long a former holder may act that has not noticed that its Lease was edited or removed.
	leaseDuration = 15 * time.Second
	// longestDuration limits the lease duration of others: an edited Lease must not stop all replicas for long.
	longestDuration = time.Minute
	// layoutDuration is that of the layout Lease. An elected replica takes the Lease when it has not changed for this
	// long. No sharded replica acts then, see [core.writableUntil].
	layoutDuration = 30 * time.Second
	// renewInterval is how old the renewal of the own Lease may be. Together with tickPeriod, it is every other tick.
	renewInterval = 3 * time.Second
	// layoutInterval is how old the layout may be before a replica renews it.
	layoutInterval = 5 * time.Second
	// silence is how long the Lease of a live replica may keep its version: it is renewed every 4 seconds at most.
	silence = 8 * time.Second
	// mostRemovals is how many Leases are removed in one tick.
	mostRemovals = 20
)
