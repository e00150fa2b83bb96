package peering

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// DefaultLifetime is the lifetime of records without one, as in Kopf.
const DefaultLifetime = 60 * time.Second

// PeerRecord is the report of one operator about itself, under its identity in the status of a peering object. Kopf:
// Peer.
type PeerRecord struct {
	// Priority decides which operator acts: the one with the highest priority.
	Priority int
	// Lifetime is how long the record is valid after LastSeen, in whole seconds.
	Lifetime time.Duration
	// LastSeen is when the operator wrote the record, by its own clock.
	LastSeen time.Time
	// Runtime is [Runtime] in records of this framework, and empty in those of Kopf.
	Runtime string
	// Group is the same for replicas that share the objects of one operator, and usually empty. Kopf's records do not
	// have it.
	Group string
	// Busy is the number of running attempts, plus one while the operator may start more. Zero means that it is idle.
	// Kopf's records do not have it.
	Busy *int

	expiry  time.Time // by the local clock; zero if only the record's own time is known
	undated bool      // the record does not have a time
}

// ExpiresAt returns when the record ends, by the local clock if the record comes from a membership.
func (r PeerRecord) ExpiresAt() time.Time {
	if !r.expiry.IsZero() {
		return r.expiry
	}
	return r.LastSeen.Add(r.Lifetime)
}

// isIdle reports whether the operator has reported that no attempt is running or will start.
func (r PeerRecord) isIdle() bool { return r.Busy != nil && *r.Busy == 0 }

// isActing reports whether the record is of this framework and its operator does not report that it is idle.
func (r PeerRecord) isActing() bool { return r.Runtime != "" && r.Busy != nil && *r.Busy > 0 }

// hasSameContent reports whether the records have the same content.
func (r PeerRecord) hasSameContent(other PeerRecord) bool {
	return r.Priority == other.Priority && r.Lifetime == other.Lifetime && r.LastSeen.Equal(other.LastSeen) &&
		r.Runtime == other.Runtime && r.Group == other.Group && ptr.Equal(r.Busy, other.Busy)
}

// hasSameUndatedContent reports whether both records lack a time, and are equal otherwise. Decoding gives such records
// the current time, which would make each observation look like a renewal.
func (r PeerRecord) hasSameUndatedContent(other PeerRecord) bool {
	other.LastSeen = r.LastSeen
	return r.undated && other.undated && r.hasSameContent(other)
}

// encodeFields returns the record as it is stored. Without a lifetime, it returns nil, which removes the record.
func (r PeerRecord) encodeFields() any {
	if r.Lifetime <= 0 {
		return nil
	}
	fields := map[string]any{
		"priority": int64(r.Priority),
		// Kopf reads whole seconds only.
		"lifetime": int64(r.Lifetime / time.Second),
		"lastseen": progress.FormatTouch(r.LastSeen),
	}
	if r.Runtime != "" {
		fields["runtime"] = r.Runtime
	}
	if r.Group != "" {
		fields["group"] = r.Group
	}
	if r.Busy != nil {
		fields["busy"] = int64(*r.Busy)
	}
	return fields
}

// DecodeRecords returns the records in the status of a peering object by identity. Missing fields have defaults:
// priority 0, the [DefaultLifetime], and now as the time.
//
// # Errors
//
// The result omits malformed records. The error joins one error for each of them, with its identity and field.
func DecodeRecords(object map[string]any, now time.Time) (map[string]PeerRecord, error) {
	records, problems := map[string]PeerRecord{}, []error(nil)
	status, ok := object["status"].(map[string]any)
	if !ok && object["status"] != nil {
		return records, fmt.Errorf("the status is a %T, not a mapping", object["status"])
	}
	for _, identity := range slices.Sorted(maps.Keys(status)) {
		record, err := decodeRecord(status[identity], now)
		if err != nil {
			problems = append(problems, fmt.Errorf("record of %q: %w", identity, err))
			continue
		}
		records[identity] = record
	}
	return records, errors.Join(problems...)
}

// decodeRecord decodes one record. Unknown fields are ignored. A malformed "busy" counts as absent, because Kopf's
// operators do not validate it.
func decodeRecord(value any, now time.Time) (r PeerRecord, err error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return r, fmt.Errorf("it is a %T, not a mapping", value)
	}
	priority, lifetime := int64(0), int64(DefaultLifetime/time.Second)
	// Like Kopf, a record without a time counts as written now.
	_, dated := fields["lastseen"]
	r.LastSeen, r.undated = now, !dated
	if value, given := fields["priority"]; given {
		if priority, err = parseInteger(value); err != nil {
			return r, fmt.Errorf("field priority: %w", err)
		}
	}
	if value, given := fields["lifetime"]; given {
		if lifetime, err = parseSeconds(value); err != nil {
			return r, fmt.Errorf("field lifetime: %w", err)
		}
	}
	if value, given := fields["lastseen"]; given {
		text, isText := value.(string)
		if !isText {
			return r, fmt.Errorf("field lastseen: it is a %T, not a timestamp", value)
		}
		if r.LastSeen, err = progress.ParseTimestamp(text); err != nil {
			return r, fmt.Errorf("field lastseen: %w", err)
		}
	}
	r.Priority, r.Lifetime = int(priority), time.Duration(lifetime)*time.Second
	r.Runtime, _ = fields["runtime"].(string)
	r.Group, _ = fields["group"].(string)
	if busy, err := parseInteger(fields["busy"]); err == nil {
		count := int(max(0, busy))
		r.Busy = &count
	}
	return r, nil
}

// parseInteger accepts whole numbers only. JSON decoders return floats for numbers such as 1.0; above 2^53, floats are
// not exact.
func parseInteger(value any) (int64, error) {
	switch value := value.(type) {
	case int64:
		return value, nil
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value), nil
		}
	}
	return 0, fmt.Errorf("%v is not a whole number", value)
}

// maxLifetime is a century, in seconds. Longer lifetimes are shortened to it: more than 292 years do not fit into a
// time.Duration.
const maxLifetime = 100 * 365 * 24 * 60 * 60

// parseSeconds accepts fractions, which are cut off, and texts of whole numbers, as Kopf does.
func parseSeconds(value any) (int64, error) {
	var number float64
	switch value := value.(type) {
	case int64:
		number = float64(value)
	case float64:
		number = math.Trunc(value)
	case string:
		whole, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of seconds", value)
		}
		number = float64(whole)
	default:
		return 0, fmt.Errorf("%v is not a number of seconds", value)
	}
	if math.IsNaN(number) {
		return 0, fmt.Errorf("%v is not a number of seconds", value)
	}
	return int64(min(max(number, -maxLifetime), maxLifetime)), nil
}
