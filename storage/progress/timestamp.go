package progress

import (
	"errors"
	"fmt"
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
	s := timestampScanner{remaining: text}
	var hour, minute, second, micro, offset int
	year, month, day := s.readDate()
	if s.acceptOneOf("T ") {
		hour, minute, second, micro = s.readClock()
		offset = s.readOffset()
	}
	if s.failed || s.remaining != "" {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNotTimestamp)
	}
	// time.Date would accept these values and carry them over.
	if hour > 23 || minute > 59 || second > 59 || offset <= -secondsPerDay || offset >= secondsPerDay {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNoSuchTime)
	}
	location := time.UTC
	if offset != 0 {
		location = time.FixedZone("", offset)
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micro*int(time.Microsecond), location)
	// Go also carries days over to the next month, and months to the next year.
	carried := t.Month() != time.Month(month) || t.Day() != day
	if utc := t.UTC().Year(); carried || year < 1 || utc < 1 || utc > 9999 {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNoSuchTime)
	}
	return t, nil
}

// secondsPerDay is the number of seconds in a day. An offset must be smaller.
const secondsPerDay = 24 * 60 * 60

// timestampScanner reads a timestamp from left to right. After a failure, its results have no meaning.
type timestampScanner struct {
	remaining string // not read yet
	failed    bool
}

// readDate reads a date. A missing month or day is 1.
func (s *timestampScanner) readDate() (year, month, day int) {
	year, month, day = s.readDigits(4, 4), 1, 1
	if s.remaining == "" {
		return year, month, day
	}
	if s.acceptOneOf("-") {
		month = s.readDigits(1, 2)
		if s.remaining == "" {
			return year, month, day
		}
	} else {
		// Without a day, six digits are an error: they could also be a short date.
		month = s.readDigits(2, 2)
	}
	if s.acceptOneOf("-") {
		return year, month, s.readDigits(1, 2)
	}
	return year, month, s.readDigits(2, 2)
}

// readClock reads a time of day without its offset. Missing parts are 0.
func (s *timestampScanner) readClock() (hour, minute, second, micro int) {
	hour = s.readDigits(2, 2)
	if !s.acceptOneOf(":") && !s.isDigit() {
		return hour, 0, 0, 0
	}
	minute = s.readDigits(2, 2)
	if !s.acceptOneOf(":") && !s.isDigit() {
		return hour, minute, 0, 0
	}
	second = s.readDigits(1, 2)
	if s.acceptOneOf(".,") {
		micro = s.readFraction()
	}
	return hour, minute, second, micro
}

// readFraction reads the digits after the dot, and returns them in microseconds. Further digits are skipped.
func (s *timestampScanner) readFraction() int {
	micro := 0
	s.failed = s.failed || !s.isDigit()
	for unit := 100_000; s.isDigit(); unit /= 10 {
		micro += unit * s.readDigits(1, 1)
	}
	return micro
}

// readOffset reads the offset from UTC, and returns it in seconds, positive to the east.
func (s *timestampScanner) readOffset() int {
	sign := 1
	switch {
	case s.remaining == "" || s.acceptOneOf("Z"):
		return 0
	case s.acceptOneOf("-"):
		sign = -1
	case !s.acceptOneOf("+"):
		s.failed = true
	}
	offset := s.readDigits(2, 2) * 60 * 60
	if s.acceptOneOf(":") || s.isDigit() {
		offset += s.readDigits(2, 2) * 60
	}
	return sign * offset
}

// readDigits reads a number of at least and at most so many digits.
func (s *timestampScanner) readDigits(least, most int) int {
	number, count := 0, 0
	for ; count < most && s.isDigit(); count++ {
		number = number*10 + int(s.remaining[0]-'0')
		s.remaining = s.remaining[1:]
	}
	s.failed = s.failed || count < least
	return number
}

// isDigit reports whether the next character is a digit.
func (s *timestampScanner) isDigit() bool {
	return s.remaining != "" && '0' <= s.remaining[0] && s.remaining[0] <= '9'
}

// acceptOneOf skips the next character if it is one of the given ones.
func (s *timestampScanner) acceptOneOf(chars string) bool {
	for i := range len(chars) {
		if s.remaining != "" && s.remaining[0] == chars[i] {
			s.remaining = s.remaining[1:]
			return true
		}
	}
	return false
}
