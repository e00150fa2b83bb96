package progress_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

func TestParseTimestampErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
	}{
		"Empty":          {reason: "There is no time in it.", text: ""},
		"Garbage":        {reason: "There is no time in it.", text: "garbage"},
		"Space":          {reason: "Spaces around are not a part of it.", text: " 2020-01-02T03:04:05Z"},
		"SpaceAfter":     {reason: "Spaces around are not a part of it.", text: "2020-01-02T03:04:05Z "},
		"SpaceInside":    {reason: "Nor are those in front of the offset.", text: "2020-01-02T03:04:05 +02:00"},
		"SmallLetters":   {reason: "Kopf does not read them.", text: "2020-01-02t03:04:05z"},
		"YearMonth":      {reason: "It could be a short date of any order.", text: "202001"},
		"Week":           {reason: "Kopf does not read weeks.", text: "2020-W01-1"},
		"Ordinal":        {reason: "Kopf does not read days of the year.", text: "2020-001"},
		"FiveDigits":     {reason: "Years have four.", text: "12020-01-01T00:00:00Z"},
		"Negative":       {reason: "Years are of our era.", text: "-2020-01-01T00:00:00Z"},
		"OtherDigits":    {reason: "Digits are ASCII.", text: "٢020-01-02T03:04:05Z"},
		"NoTime":         {reason: "A separator separates.", text: "2020-01-02T"},
		"OffsetOnly":     {reason: "An offset belongs to a time.", text: "2020-01-02T+02:00"},
		"DateWithOffset": {reason: "An offset belongs to a time.", text: "2020-01-02Z"},
		"MonthWithTime":  {reason: "A time belongs to a day.", text: "2020-01T00:00:00Z"},
		"ShortHour":      {reason: "Hours have two digits.", text: "2020-01-02T3:04:05Z"},
		"ShortMinute":    {reason: "Minutes have two digits.", text: "2020-01-02T03:4:05Z"},
		"EmptyFraction":  {reason: "A dot begins a fraction.", text: "2020-01-02T03:04:05.Z"},
		"HourFraction":   {reason: "Only seconds have one.", text: "2020-01-02T03.5Z"},
		"ShortOffset":    {reason: "Its hours have two digits.", text: "2020-01-02T03:04:05+2"},
		"HalfOffset":     {reason: "Its minutes have two digits.", text: "2020-01-02T03:04:05+02:3"},
		"OffsetSeconds":  {reason: "There are none.", text: "2020-01-02T03:04:05+02:00:30"},
		"TypographicSig": {reason: "A minus is ASCII.", text: "2020-01-02T03:04:05−02:00"},
		"Month0":         {reason: "It is not in the calendar.", text: "2020-00-01T00:00:00Z"},
		"Month13":        {reason: "It is not in the calendar.", text: "2020-13-01T00:00:00Z"},
		"Day0":           {reason: "It is not in the calendar.", text: "2020-01-00T00:00:00Z"},
		"Day30":          {reason: "February does not have it.", text: "2020-02-30T00:00:00Z"},
		"Leap":           {reason: "Only leap years have it.", text: "2021-02-29T00:00:00Z"},
		"Hour24":         {reason: "It is the next day.", text: "2020-01-02T24:00:00Z"},
		"Minute60":       {reason: "It is the next hour.", text: "2020-01-02T22:60:00Z"},
		"Second60":       {reason: "It is the next minute.", text: "2020-01-02T22:58:60Z"},
		"LeapSecond":     {reason: "Nobody reads leap seconds.", text: "2020-01-02T23:59:60Z"},
		"Offset24":       {reason: "No place is a day away.", text: "2020-01-02T03:04:05+24:00"},
		"OffsetMinus24":  {reason: "In neither direction.", text: "2020-01-02T03:04:05-24:00"},
		"Year0":          {reason: "It is before the first year.", text: "0000-12-31T23:00:00-02:00"},
		"BeforeYear1":    {reason: "In UTC, it is before the first year.", text: "0001-01-01T00:00:00+02:00"},
		"AfterYear9999":  {reason: "In UTC, it is after the last year.", text: "9999-12-31T23:59:59-02:00"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := progress.ParseTimestamp(tc.text); err == nil {
				t.Errorf("%s\nparsed %q as %v, want an error", tc.reason, tc.text, got)
			}
		})
	}
}

func TestParseTimestamp(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Record": {
			reason: "It is how records are written.", text: "2020-01-02T03:04:05.123456+00:00",
			want: "2020-01-02T03:04:05.123456+00:00",
		},
		"Zulu": {
			reason: "It is how Go writes.", text: "2020-01-02T03:04:05Z", want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Nano": {
			reason: "What is below a microsecond is cut, not rounded.", text: "2020-01-02T03:04:05.999999999Z",
			want: "2020-01-02T03:04:05.999999+00:00",
		},
		"Comma": {
			reason: "ISO prefers it.", text: "2020-01-02T03:04:05,5Z", want: "2020-01-02T03:04:05.500000+00:00",
		},
		"Compact": {
			reason: "Dashes and colons may be missing.", text: "20200102T030405Z",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Mixed": {
			reason: "Some of them, too.", text: "20200102T03:0405+0230", want: "2020-01-02T03:04:05.000000+02:30",
		},
		"Space": {
			reason: "It is how people write.", text: "2020-01-02 03:04:05-02", want: "2020-01-02T03:04:05.000000-02:00",
		},
		"SingleDigit": {
			reason: "Kopf reads them after a dash.", text: "2020-1-2T03:04:5Z",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Minutes": {
			reason: "Seconds may be missing.", text: "2020-01-02T03:04+23:59", want: "2020-01-02T03:04:00.000000+23:59",
		},
		"Hours": {
			reason: "So may the minutes.", text: "2020-01-02T03Z", want: "2020-01-02T03:00:00.000000+00:00",
		},
		"Naive": {
			reason: "Without an offset, it is UTC.", text: "2020-01-02T03:04:05",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Date": {
			reason: "The day begins at midnight, in UTC.", text: "2020-01-02", want: "2020-01-02T00:00:00.000000+00:00",
		},
		"CompactDate": {reason: "Dashes may be missing.", text: "20200102", want: "2020-01-02T00:00:00.000000+00:00"},
		"HalfDate":    {reason: "Or some of them.", text: "2020-0102", want: "2020-01-02T00:00:00.000000+00:00"},
		"Month": {
			reason: "The month begins with its first day.", text: "2020-02", want: "2020-02-01T00:00:00.000000+00:00",
		},
		"Year": {
			reason: "The year begins with its first month.", text: "2020", want: "2020-01-01T00:00:00.000000+00:00",
		},
		"Leap": {
			reason: "Leap years have that day.", text: "2020-02-29T00:00:00Z", want: "2020-02-29T00:00:00.000000+00:00",
		},
		"MinusZero": {
			reason: "It is UTC all the same.", text: "2020-01-02T03:04:05-00:00",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"First": {
			reason: "It is the first one ever.", text: "0001-01-01T00:00:00Z", want: "0001-01-01T00:00:00.000000+00:00",
		},
		"Last": {
			reason: "It is the last one ever.", text: "9999-12-31T23:59:59.999999Z",
			want: "9999-12-31T23:59:59.999999+00:00",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := progress.ParseTimestamp(tc.text)
			if err != nil {
				t.Fatalf("%s\ncannot parse: %v", tc.reason, err)
			}
			if delta := cmp.Diff(tc.want, progress.FormatTimestamp(got)); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

func TestFormatTouchIsInUTC(t *testing.T) {
	east := time.FixedZone("east", 2*60*60)
	for _, tc := range []struct {
		reason string
		moment time.Time
		want   string
	}{
		{"It is the same moment everywhere.", time.Date(2020, 1, 2, 3, 4, 5, 0, east), "2020-01-02T01:04:05+00:00"},
		{"Nanoseconds are no fraction.", time.Date(2020, 1, 2, 3, 4, 5, 999, east), "2020-01-02T01:04:05+00:00"},
		{"All six digits are written.", time.Date(
			2020, 1, 2, 3, 4, 5, 120_000_999, east,
		), "2020-01-02T01:04:05.120000+00:00"},
	} {
		if delta := cmp.Diff(tc.want, progress.FormatTouch(tc.moment)); delta != "" {
			t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
		}
	}
}

func FuzzParseTimestamp(f *testing.F) {
	for _, seed := range []string{
		"2020-01-02T03:04:05.123456+00:00", "20200102T0304Z", "2020-1-2 03", "9999-12-31T23:59:59-23:59", "2020",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		moment, err := progress.ParseTimestamp(text)
		if err != nil {
			if unwrapped := errors.Unwrap(err); unwrapped == nil {
				t.Errorf("the error %q has no reason", err)
			}
			return
		}
		again, err := progress.ParseTimestamp(progress.FormatTimestamp(moment))
		if err != nil || !again.Equal(moment) {
			t.Errorf("parsed %q as %v, then as %v with error %v", text, moment, again, err)
		}
	})
}
