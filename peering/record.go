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

// DefaultLifetime is that of records that say none. Kopf has the same.
const DefaultLifetime = 60 * time.Second

// Record is what an operator says of itself under its identity in the status of a peering object. Kopf: Peer.
type Record struct {
	// Priority decides who acts: the highest one.
	Priority int
	// Lifetime is how long the record is good after LastSeen, in whole seconds.
	Lifetime time.Duration
	// LastSeen is when the operator has written it, on its own clock.
	LastSeen time.Time
	// Runtime is empty in records of Kopf; ours say what they are of.
	Runtime string
	// Busy is 0 if the operator is at rest: it starts nothing, and nothing of it is running. Otherwise it counts the
	// attempts that are running, and one more while it may start any. It is nil if the record does not say. Kopf's
	// never do.
	Busy *int

	dies    time.Time // zero is as the record says
	undated bool      // it does not say when it was written
}

// Expires is when the record is good no more.
func (r Record) Expires() time.Time {
	if !r.dies.IsZero() {
		return r.dies
	}
	return r.LastSeen.Add(r.Lifetime)
}

// atRest tells whether the record says that its operator does nothing.
func (r Record) atRest() bool { return r.Busy != nil && *r.Busy == 0 }

// acts tells whether the record is one of ours that says that its operator does something.
func (r Record) acts() bool { return r.Runtime != "" && r.Busy != nil && *r.Busy > 0 }

// same tells whether it is the same record, seen again.
func (r Record) same(other Record) bool {
	return r.Priority == other.Priority && r.Lifetime == other.Lifetime && r.LastSeen.Equal(other.LastSeen) &&
		r.Runtime == other.Runtime && ptr.Equal(r.Busy, other.Busy)
}

// sameUndated reports whether it is the same record without a time, seen again.
func (r Record) sameUndated(other Record) bool {
	other.LastSeen = r.LastSeen
	return r.undated && other.undated && r.same(other)
}

// encode gives the record as it is stored; nil, which removes it, if it is good for no time at all.
func (r Record) encode() any {
	if r.Lifetime <= 0 {
		return nil
	}
	fields := map[string]any{
		"priority": int64(r.Priority),
		"lifetime": int64(r.Lifetime / time.Second),
		"lastseen": progress.FormatTouch(r.LastSeen),
	}
	if r.Runtime != "" {
		fields["runtime"] = r.Runtime
	}
	if r.Busy != nil {
		fields["busy"] = int64(*r.Busy)
	}
	return fields
}

// Decode reads the records in the status of a peering object, by identities. What a record does not say is its default:
// the priority 0, the [DefaultLifetime], and now for its time.
//
// # Errors
//
// A record that cannot be read is missing in the result. The error joins one for each of these, with its identity and
// its field.
func Decode(object map[string]any, now time.Time) (map[string]Record, error) {
	records, problems := map[string]Record{}, []error(nil)
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

func decodeRecord(value any, now time.Time) (r Record, err error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return r, fmt.Errorf("it is a %T, not a mapping", value)
	}
	priority, lifetime := int64(0), int64(DefaultLifetime/time.Second)
	_, dated := fields["lastseen"]
	r.LastSeen, r.undated = now, !dated
	if value, given := fields["priority"]; given {
		if priority, err = integer(value); err != nil {
			return r, fmt.Errorf("field priority: %w", err)
		}
	}
	if value, given := fields["lifetime"]; given {
		if lifetime, err = seconds(value); err != nil {
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
	if busy, err := integer(fields["busy"]); err == nil {
		count := int(max(0, busy))
		r.Busy = &count
	}
	return r, nil
}

// integer takes whole numbers only.
func integer(value any) (int64, error) {
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

// maxLifetime is a century, in seconds. What is longer is as good as that, and would not fit into a duration some time.
const maxLifetime = 100 * 365 * 24 * 60 * 60

// seconds takes fractions, which are cut off, and texts of whole numbers, as Kopf does.
func seconds(value any) (int64, error) {
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
