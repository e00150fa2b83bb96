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
		"Empty":          {reason: "an empty text is an error", text: ""},
		"Garbage":        {reason: "a text that is not a time is an error", text: "garbage"},
		"Space":          {reason: "a space at the beginning is an error", text: " 2020-01-02T03:04:05Z"},
		"SpaceAfter":     {reason: "a space at the end is an error", text: "2020-01-02T03:04:05Z "},
		"SpaceInside":    {reason: "a space before the offset is an error", text: "2020-01-02T03:04:05 +02:00"},
		"SmallLetters":   {reason: "lower-case letters are an error, as in Kopf", text: "2020-01-02t03:04:05z"},
		"YearMonth":      {reason: "a compact month is an error, as it is ambiguous", text: "202001"},
		"Week":           {reason: "a week is an error, as in Kopf", text: "2020-W01-1"},
		"Ordinal":        {reason: "a day of the year is an error, as in Kopf", text: "2020-001"},
		"FiveDigits":     {reason: "a year of five digits is an error", text: "12020-01-01T00:00:00Z"},
		"Negative":       {reason: "a negative year is an error", text: "-2020-01-01T00:00:00Z"},
		"OtherDigits":    {reason: "a digit outside of ASCII is an error", text: "٢020-01-02T03:04:05Z"},
		"NoTime":         {reason: "a separator without a time is an error", text: "2020-01-02T"},
		"OffsetOnly":     {reason: "an offset without a time is an error", text: "2020-01-02T+02:00"},
		"DateWithOffset": {reason: "an offset after a date is an error", text: "2020-01-02Z"},
		"MonthWithTime":  {reason: "a time after a month is an error", text: "2020-01T00:00:00Z"},
		"ShortHour":      {reason: "an hour of one digit is an error", text: "2020-01-02T3:04:05Z"},
		"ShortMinute":    {reason: "a minute of one digit is an error", text: "2020-01-02T03:4:05Z"},
		"EmptyFraction":  {reason: "an empty fraction is an error", text: "2020-01-02T03:04:05.Z"},
		"HourFraction":   {reason: "a fraction of an hour is an error", text: "2020-01-02T03.5Z"},
		"ShortOffset":    {reason: "an offset of one digit is an error", text: "2020-01-02T03:04:05+2"},
		"HalfOffset": {reason: "an offset with a minute of one digit is an error",
			text: "2020-01-02T03:04:05+02:3"},
		"OffsetSeconds":  {reason: "an offset with seconds is an error", text: "2020-01-02T03:04:05+02:00:30"},
		"TypographicSig": {reason: "a minus outside of ASCII is an error", text: "2020-01-02T03:04:05−02:00"},
		"Month0":         {reason: "month 0 is an error", text: "2020-00-01T00:00:00Z"},
		"Month13":        {reason: "month 13 is an error", text: "2020-13-01T00:00:00Z"},
		"Day0":           {reason: "day 0 is an error", text: "2020-01-00T00:00:00Z"},
		"Day30":          {reason: "day 30 of February is an error", text: "2020-02-30T00:00:00Z"},
		"Leap": {reason: "day 29 of February is an error in other than leap years",
			text: "2021-02-29T00:00:00Z"},
		"Hour24":        {reason: "hour 24 is an error", text: "2020-01-02T24:00:00Z"},
		"Minute60":      {reason: "minute 60 is an error", text: "2020-01-02T22:60:00Z"},
		"Second60":      {reason: "second 60 is an error", text: "2020-01-02T22:58:60Z"},
		"LeapSecond":    {reason: "a leap second is an error", text: "2020-01-02T23:59:60Z"},
		"Offset24":      {reason: "an offset of 24 hours is an error", text: "2020-01-02T03:04:05+24:00"},
		"OffsetMinus24": {reason: "a negative offset of 24 hours is an error", text: "2020-01-02T03:04:05-24:00"},
		"Year0":         {reason: "the year 0 is an error", text: "0000-12-31T23:00:00-02:00"},
		"BeforeYear1":   {reason: "a time before the year 1 in UTC is an error", text: "0001-01-01T00:00:00+02:00"},
		"AfterYear9999": {reason: "a time after the year 9999 in UTC is an error", text: "9999-12-31T23:59:59-02:00"},
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
			reason: "the form of records is read", text: "2020-01-02T03:04:05.123456+00:00",
			want: "2020-01-02T03:04:05.123456+00:00",
		},
		"Zulu": {
			reason: "the letter Z is UTC", text: "2020-01-02T03:04:05Z", want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Nano": {
			reason: "digits below a microsecond are cut, not rounded", text: "2020-01-02T03:04:05.999999999Z",
			want: "2020-01-02T03:04:05.999999+00:00",
		},
		"Comma": {
			reason: "a comma can begin a fraction",
			text:   "2020-01-02T03:04:05,5Z", want: "2020-01-02T03:04:05.500000+00:00",
		},
		"Compact": {
			reason: "dashes and colons are optional", text: "20200102T030405Z",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Mixed": {
			reason: "each dash and colon is optional",
			text:   "20200102T03:0405+0230", want: "2020-01-02T03:04:05.000000+02:30",
		},
		"Space": {
			reason: "a space can separate the date and the time",
			text:   "2020-01-02 03:04:05-02", want: "2020-01-02T03:04:05.000000-02:00",
		},
		"SingleDigit": {
			reason: "single digits are read after a dash, as in Kopf", text: "2020-1-2T03:04:5Z",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Minutes": {
			reason: "seconds are optional", text: "2020-01-02T03:04+23:59", want: "2020-01-02T03:04:00.000000+23:59",
		},
		"Hours": {
			reason: "minutes are optional", text: "2020-01-02T03Z", want: "2020-01-02T03:00:00.000000+00:00",
		},
		"Naive": {
			reason: "a time without an offset is in UTC", text: "2020-01-02T03:04:05",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"Date": {
			reason: "a date is its midnight in UTC", text: "2020-01-02", want: "2020-01-02T00:00:00.000000+00:00",
		},
		"CompactDate": {reason: "the dashes of a date are optional",
			text: "20200102", want: "2020-01-02T00:00:00.000000+00:00"},
		"HalfDate": {reason: "each dash of a date is optional",
			text: "2020-0102", want: "2020-01-02T00:00:00.000000+00:00"},
		"Month": {
			reason: "a month is its first day", text: "2020-02", want: "2020-02-01T00:00:00.000000+00:00",
		},
		"Year": {
			reason: "a year is its first day", text: "2020", want: "2020-01-01T00:00:00.000000+00:00",
		},
		"Leap": {
			reason: "day 29 of February is read in a leap year",
			text:   "2020-02-29T00:00:00Z", want: "2020-02-29T00:00:00.000000+00:00",
		},
		"MinusZero": {
			reason: "a negative offset of zero is UTC", text: "2020-01-02T03:04:05-00:00",
			want: "2020-01-02T03:04:05.000000+00:00",
		},
		"First": {
			reason: "the first time of the year 1 is read",
			text:   "0001-01-01T00:00:00Z", want: "0001-01-01T00:00:00.000000+00:00",
		},
		"Last": {
			reason: "the last time of the year 9999 is read", text: "9999-12-31T23:59:59.999999Z",
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
		{"the touch time is in UTC", time.Date(2020, 1, 2, 3, 4, 5, 0, east), "2020-01-02T01:04:05+00:00"},
		{"nanoseconds alone do not give a fraction",
			time.Date(2020, 1, 2, 3, 4, 5, 999, east), "2020-01-02T01:04:05+00:00"},
		{"a fraction has six digits", time.Date(
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
				t.Errorf("the error %q must wrap its reason", err)
			}
			return
		}
		again, err := progress.ParseTimestamp(progress.FormatTimestamp(moment))
		if err != nil || !again.Equal(moment) {
			t.Errorf("parsed %q as %v, then as %v with error %v", text, moment, again, err)
		}
	})
}
