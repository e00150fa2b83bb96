package progress

import (
	"errors"
	"fmt"
	"time"
)

const (
	wholeSeconds = "2006-01-02T15:04:05-07:00"
	microseconds = "2006-01-02T15:04:05.000000-07:00"
)

// FormatTimestamp returns the time in the form of records: ISO 8601 with six digits of a fraction and the offset in
// digits, such as "2024-05-06T07:08:09.123456+00:00". What is below a microsecond is cut off. The offset is that of the
// time's own location; records have UTC.
func FormatTimestamp(t time.Time) string {
	return t.Format(microseconds)
}

// FormatTouch returns the time in the form of touches, peers and events: as [FormatTimestamp] does, but always in UTC,
// and with no fraction if that is zero, such as "2024-05-06T07:08:09+00:00".
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

// ParseTimestamp reads a timestamp in all forms of ISO 8601 that Kopf reads: a date, or a date and a time after a "T"
// or a space; dashes and colons may be missing, and so may the parts from the month and from the minute on; a fraction
// of the second may follow a dot or a comma, of which six digits are taken; the offset is "Z", "+hh", "+hhmm" or
// "+hh:mm". A timestamp without an offset is in UTC (deviation D-timestamp-utc; in Kopf, the object is blocked by it).
//
// The result is in UTC if the offset is zero, otherwise in a location of that offset. It is an error if there is no
// such time in the calendar, or if it is outside of the years 1 to 9999 in UTC.
func ParseTimestamp(text string) (time.Time, error) {
	s := scanner{rest: text}
	var hour, minute, second, micro, offset int
	year, month, day := s.date()
	if s.accept("T ") {
		hour, minute, second, micro = s.clock()
		offset = s.offset()
	}
	if s.failed || s.rest != "" {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNotTimestamp)
	}
	if hour > 23 || minute > 59 || second > 59 || offset <= -day24 || offset >= day24 {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNoSuchTime)
	}
	location := time.UTC
	if offset != 0 {
		location = time.FixedZone("", offset)
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, micro*int(time.Microsecond), location)
	// Go carries days over to the next month, and months to the next year.
	carried := t.Month() != time.Month(month) || t.Day() != day
	if utc := t.UTC().Year(); carried || year < 1 || utc < 1 || utc > 9999 {
		return time.Time{}, fmt.Errorf("timestamp %q: %w", text, errNoSuchTime)
	}
	return t, nil
}

const day24 = 24 * 60 * 60 // seconds

// scanner reads a timestamp from left to right. After a failure, what it returns has no meaning.
type scanner struct {
	rest   string
	failed bool
}

func (s *scanner) date() (year, month, day int) {
	year, month, day = s.digits(4, 4), 1, 1
	if s.rest == "" {
		return year, month, day
	}
	if s.accept("-") {
		month = s.digits(1, 2)
		if s.rest == "" {
			return year, month, day
		}
	} else {
		// Six digits, with no day, are not a month: they could be a short date as well.
		month = s.digits(2, 2)
	}
	if s.accept("-") {
		return year, month, s.digits(1, 2)
	}
	return year, month, s.digits(2, 2)
}

func (s *scanner) clock() (hour, minute, second, micro int) {
	hour = s.digits(2, 2)
	if !s.accept(":") && !s.isDigit() {
		return hour, 0, 0, 0
	}
	minute = s.digits(2, 2)
	if !s.accept(":") && !s.isDigit() {
		return hour, minute, 0, 0
	}
	second = s.digits(1, 2)
	if s.accept(".,") {
		micro = s.fraction()
	}
	return hour, minute, second, micro
}

// fraction is the digits after the dot, in microseconds.
func (s *scanner) fraction() int {
	micro := 0
	s.failed = s.failed || !s.isDigit()
	for unit := 100_000; s.isDigit(); unit /= 10 {
		micro += unit * s.digits(1, 1)
	}
	return micro
}

// offset is that from UTC in seconds, positive to the east.
func (s *scanner) offset() int {
	sign := 1
	switch {
	case s.rest == "" || s.accept("Z"):
		return 0
	case s.accept("-"):
		sign = -1
	case !s.accept("+"):
		s.failed = true
	}
	offset := s.digits(2, 2) * 60 * 60
	if s.accept(":") || s.isDigit() {
		offset += s.digits(2, 2) * 60
	}
	return sign * offset
}

// digits reads a number of so many digits.
func (s *scanner) digits(least, most int) int {
	number, count := 0, 0
	for ; count < most && s.isDigit(); count++ {
		number = number*10 + int(s.rest[0]-'0')
		s.rest = s.rest[1:]
	}
	s.failed = s.failed || count < least
	return number
}

func (s *scanner) isDigit() bool {
	return s.rest != "" && '0' <= s.rest[0] && s.rest[0] <= '9'
}

// accept skips one character if it is one of these.
func (s *scanner) accept(chars string) bool {
	for i := range len(chars) {
		if s.rest != "" && s.rest[0] == chars[i] {
			s.rest = s.rest[1:]
			return true
		}
	}
	return false
}
