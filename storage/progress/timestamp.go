package progress

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The layouts equal those of Python's isoformat: the fraction has six digits, or is missing.
const (
	wholeSeconds = "2006-01-02T15:04:05-07:00"
	microseconds = "2006-01-02T15:04:05.000000-07:00"
)

// FormatTimestamp returns the time in the format of records: ISO 8601 with a fraction of six digits and a numeric
// offset, such as "2024-05-06T07:08:09.123456+00:00". Digits below a microsecond are cut off. The offset is that of the
// time's location; records use UTC.
func FormatTimestamp(t time.Time) string {
	return t.Format(microseconds)
}

// FormatTouch returns the time in the format of touches, peers and events. It is like [FormatTimestamp], but always in
// UTC, and without the fraction if that is zero, such as "2024-05-06T07:08:09+00:00".
func FormatTouch(t time.Time) string {
	t = t.UTC().Truncate(time.Microsecond)
	if t.Nanosecond() == 0 {
		return t.Format(wholeSeconds)
	}
	return t.Format(microseconds)
}

var (
	errNotTimestamp = errors.New("it is not an ISO 8601 timestamp such as 2024-05-06T07:08:09.123456+00:00")
	errNoSuchTime   = errors.New("there is no such time")
)

// ParseTimestamp parses a timestamp in all forms of ISO 8601 that Kopf reads:
//
//   - It is a date, or a date and a time after a "T" or a space.
//   - Dashes and colons can be missing, and so can the parts from the month and from the minute on.
//   - A fraction of the second follows a dot or a comma; six of its digits are used.
//   - The offset is "Z", "+hh", "+hhmm" or "+hh:mm". Without an offset, the timestamp is in UTC (deviation
//     D-timestamp-utc; in Kopf, it blocks the object).
//
// The result is in UTC if the offset is zero, and otherwise in a location of that offset.
//
// # Errors
//
// It returns an error if the text has another form, if the calendar does not have this time, or if the time is outside
// of the years 1 to 9999 in UTC, the range of Python.
func ParseTimestamp(text string) (time.Time, error) {
	var t time.Time
	var err error
	// Records have this form. It has a fixed length, which excludes the variants that time.Parse also accepts.
	if len(text) == len(microseconds) {
		t, err = time.Parse(microseconds, text)
	}
	if t.IsZero() || err != nil {
		if t, err = parseOtherForm(text); err != nil {
			return time.Time{}, fmt.Errorf("timestamp %q: %w", text, err)
		}
	}
	_, offset := t.Zone()
	utc := t.UTC().Year()
	if t.Year() < 1 || utc < 1 || utc > 9999 || offset <= -secondsPerDay || offset >= secondsPerDay {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNoSuchTime)
	}
	return t, nil
}

// secondsPerDay is the number of seconds in a day. An offset must be smaller.
const secondsPerDay = 24 * 60 * 60

// timestampPattern has a group for each part, from the year to the minutes of the offset. Months and days can have one
// digit after a dash. Without a day, the month has a dash: otherwise, it could also be the beginning of a short date.
var timestampPattern = regexp.MustCompile(`^(\d{4})(?:(-\d{1,2}|\d\d)(-\d{1,2}|\d\d)(?:[T ](\d\d)` +
	`(?::?(\d\d)(?::?(\d{1,2})(?:[.,](\d+))?)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?|-(\d{1,2}))?$`)

// parseOtherForm parses a timestamp that does not have the form of records.
func parseOtherForm(text string) (time.Time, error) {
	parts := timestampPattern.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, errNotTimestamp
	}
	number := func(part, missing string) int {
		value, _ := strconv.Atoi(strings.TrimPrefix(cmp.Or(part, missing), "-")) // the pattern has digits only
		return value
	}
	year, month, day := number(parts[1], ""), number(parts[2]+parts[11], "1"), number(parts[3], "1")
	hour, minute, second := number(parts[4], "0"), number(parts[5], "0"), number(parts[6], "0")
	micro := number((parts[7] + "000000")[:6], "")
	location := time.UTC
	if offset := number(parts[9], "0")*60*60 + number(parts[10], "0")*60; offset != 0 {
		if parts[8] == "-" {
			offset = -offset
		}
		location = time.FixedZone("", offset)
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micro*int(time.Microsecond), location)
	// time.Date accepts values that do not exist, and carries them over.
	if hour > 23 || minute > 59 || second > 59 || t.Month() != time.Month(month) || t.Day() != day {
		return time.Time{}, errNoSuchTime
	}
	return t, nil
}
