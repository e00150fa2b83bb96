package progress_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	"github.com/kopf-runtime/kopf-runtime/test/vectors"
)

type (
	object = map[string]any
	list   = []any
)

var testTime = time.Date(2024, 5, 6, 7, 8, 9, 123_456_000, time.UTC)

func TestDecodeRecordErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string
		value  any
	}{
		"TimeAsNumber":     {reason: "a time as a number is an error", key: "started", value: int64(1)},
		"TimeAsGarbage":    {reason: "a text that is not a time is an error", key: "stopped", value: "yesterday"},
		"EmptyTime":        {reason: "an empty time is an error", key: "delayed", value: ""},
		"PurposeAsNumber":  {reason: "a purpose as a number is an error", key: "purpose", value: int64(1)},
		"RetriesAsText":    {reason: "retries as a text are an error", key: "retries", value: "three"},
		"RetriesAsBoolean": {reason: "retries as a boolean are an error", key: "retries", value: true},
		"RetriesHalf":      {reason: "a fraction of retries is an error", key: "retries", value: 1.5},
		"RetriesNegative":  {reason: "negative retries are an error", key: "retries", value: int64(-1)},
		"RetriesNaN":       {reason: "NaN retries are an error", key: "retries", value: math.NaN()},
		"RetriesHuge":      {reason: "retries beyond int64 are an error", key: "retries", value: 1e300},
		"SuccessAsNumber":  {reason: "success as a number is an error", key: "success", value: int64(1)},
		"FailureAsText":    {reason: "failure as a text is an error", key: "failure", value: "false"},
		"MessageAsObject":  {reason: "a message as an object is an error", key: "message", value: object{}},
		"SubrefsAsText":    {reason: "subrefs as a text are an error", key: "subrefs", value: "fn/a"},
		"SubrefsAsNumbers": {reason: "a number among subrefs is an error",
			key: "subrefs", value: list{"fn/a", int64(1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := progress.DecodeRecord(object{tc.key: tc.value})
			if err == nil || !strings.Contains(err.Error(), "key "+tc.key) {
				t.Errorf("%s\ngot %v and error %v, want one that names the key", tc.reason, record.JSONFields(), err)
			}
		})
	}
}

func TestDecodeRecord(t *testing.T) {
	cases := map[string]struct {
		reason string
		fields object
		want   progress.Record
	}{
		"Empty": {reason: "an empty record is valid", fields: object{}},
		"Nulls": {
			reason: "null keys count as absent",
			fields: object{
				"started": nil, "purpose": nil, "retries": nil, "success": nil, "message": nil, "subrefs": nil,
			},
		},
		"Full": {
			reason: "all keys of Kopf are decoded",
			fields: object{
				"started": "2024-05-06T07:08:09.123456+00:00", "stopped": "2024-05-06T09:08:09.123456+02:00",
				"delayed": "2024-05-06T07:08:09.123456", "purpose": "create", "retries": int64(3), "success": true,
				"failure": false, "message": "later", "subrefs": list{"fn/a", "fn/b"},
			},
			want: progress.Record{
				Started: &testTime, Stopped: &testTime, Delayed: &testTime, Purpose: ptr.To("create"),
				Retries: ptr.To(int64(3)),
				Success: ptr.To(true), Failure: ptr.To(false), Message: ptr.To("later"), Subrefs: []string{
					"fn/a", "fn/b",
				},
			},
		},
		"Float": {
			reason: "a float without a fraction counts as an integer",
			fields: object{"retries": 3.0},
			want:   progress.Record{Retries: ptr.To(int64(3))},
		},
		"Zeroes": {
			reason: "zero values are not absent",
			fields: object{"retries": int64(0), "success": false, "purpose": "", "message": "", "subrefs": list{}},
			want: progress.Record{
				Retries: ptr.To(int64(0)), Success: ptr.To(false), Purpose: ptr.To(""), Message: ptr.To(""),
				Subrefs: []string{},
			},
		},
		"Unknown": {
			reason: "unknown keys are ignored",
			fields: object{"retries": int64(1), "color": "red"},
			want:   progress.Record{Retries: ptr.To(int64(1))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vectors.Unchanged(t, tc.fields)
			got, err := progress.DecodeRecord(tc.fields)
			if err != nil {
				t.Fatalf("%s\ncannot decode: %v", tc.reason, err)
			}
			if delta := cmp.Diff(tc.want, got); delta != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, delta)
			}
		})
	}
}

// TestRecordFields shows that a decoded record keeps its form, while a new one has a null for each absent key to
// replace all former keys.
func TestRecordFields(t *testing.T) {
	nulls := object{
		"started": nil, "stopped": nil, "delayed": nil, "purpose": nil, "retries": nil, "success": nil, "failure": nil,
		"message": nil, "subrefs": nil,
	}
	if delta := cmp.Diff(nulls, progress.Record{}.JSONFields()); delta != "" {
		t.Errorf("a new record must have a null for each nil field, -want, +got:\n%s", delta)
	}
	read := object{"retries": int64(1), "message": nil, "color": "red"}
	record, err := progress.DecodeRecord(read)
	if err != nil {
		t.Fatalf("cannot decode: %v", err)
	}
	if delta := cmp.Diff(read, record.JSONFields()); delta != "" {
		t.Errorf("a decoded record must keep its form, -want, +got:\n%s", delta)
	}
	local := testTime.In(time.FixedZone("east", 2*60*60)).Add(999)
	if delta := cmp.Diff(
		"2024-05-06T07:08:09.123456+00:00", (progress.Record{Started: &local}).JSONFields()["started"],
	); delta != "" {
		t.Errorf("times must be in UTC with microseconds, -want, +got:\n%s", delta)
	}
}

// TestForeign shows that a record in another form than ours must be written again, even if its contents are
// unchanged.
func TestForeign(t *testing.T) {
	const own, respelled = "2024-05-06T07:08:09.123456+00:00", "2024-05-06T07:08:09.123456"
	cases := map[string]struct {
		reason          string
		record          string
		inText, inField bool
	}{
		"Own": {reason: "a record in our form is not foreign", record: `{"started":"` + own + `","retries":1}`},
		"Respelled": {
			reason: "a time in another notation makes a record foreign", record: `{"started":"` + respelled + `"}`,
			inText: true, inField: true,
		},
		"OneOfTwo": {
			reason: "one time in another notation is enough",
			record: `{"started":"` + respelled + `","stopped":"` + own + `"}`, inText: true, inField: true,
		},
		"UnknownKey": {
			reason: "an unknown key makes a text foreign, but not fields, which are merged",
			record: `{"retries":1,"color":"red"}`, inText: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inText, err := progress.Annotations{}.Fetch(objectWithAnnotations(object{"kopf.zalando.org/fn": tc.record}),
				"fn")
			if err != nil {
				t.Fatalf("fetching the annotation: %v", err)
			}
			fields, err := storage.ParseObject(tc.record)
			if err != nil {
				t.Fatalf("parsing the record: %v", err)
			}
			inField, err := progress.DecodeRecord(fields)
			if err != nil {
				t.Fatalf("decoding the fields: %v", err)
			}
			if got := []bool{inText.IsForeign(), inField.IsForeign()}; !cmp.Equal([]bool{tc.inText, tc.inField}, got) {
				t.Errorf("%s\ngot %v as text and as fields, want %v and %v", tc.reason, got, tc.inText, tc.inField)
			}
		})
	}
}

func TestRecordEqual(t *testing.T) {
	later := testTime.Add(time.Microsecond)
	nearly := testTime.Add(time.Nanosecond).In(time.FixedZone("east", 2*60*60))
	unknown, err := progress.DecodeRecord(object{"color": "red", "message": nil})
	if err != nil {
		t.Fatalf("cannot decode: %v", err)
	}
	cases := map[string]struct {
		reason string
		a, b   progress.Record
		want   bool
	}{
		"Started": {
			reason: "records with different starts differ", a: progress.Record{Started: &testTime},
			b: progress.Record{Started: &later},
		},
		"NoStarted": {reason: "a record with a start differs from one without", a: progress.Record{Started: &testTime}},
		"Stopped": {reason: "records with different stops differ",
			a: progress.Record{Stopped: &testTime}, b: progress.Record{Stopped: &later}},
		"Delayed": {
			reason: "records with different delays differ", a: progress.Record{Delayed: &testTime},
			b: progress.Record{Delayed: &later},
		},
		"Purpose": {
			reason: "records with different purposes differ", a: progress.Record{Purpose: ptr.To("create")},
			b: progress.Record{Purpose: ptr.To("update")},
		},
		"Retries": {
			reason: "records with different retries differ", a: progress.Record{Retries: ptr.To(int64(1))},
			b: progress.Record{Retries: ptr.To(int64(2))},
		},
		"NoRetries": {reason: "zero retries differ from absent ones", a: progress.Record{Retries: ptr.To(int64(0))}},
		"Success": {
			reason: "records with different success differ", a: progress.Record{Success: ptr.To(false)},
			b: progress.Record{Success: ptr.To(true)},
		},
		"Failure": {
			reason: "records with different failure differ", a: progress.Record{Failure: ptr.To(false)},
			b: progress.Record{Failure: ptr.To(true)},
		},
		"Message": {
			reason: "records with different messages differ",
			a:      progress.Record{Message: ptr.To("a")}, b: progress.Record{Message: ptr.To("b")},
		},
		"Subrefs": {
			reason: "records with different subrefs differ", a: progress.Record{Subrefs: []string{"a"}},
			b: progress.Record{Subrefs: []string{"a", "b"}},
		},
		"NoSubrefs": {reason: "empty subrefs differ from absent ones", a: progress.Record{Subrefs: []string{}}},
		"Nothing":   {reason: "empty records are equal", want: true},
		"Unknown":   {reason: "unknown and null keys do not make a difference", a: unknown, want: true},
		"Nearly": {
			reason: "times are equal up to a microsecond, in any time zone",
			a:      progress.Record{Started: &testTime}, b: progress.Record{Started: &nearly}, want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.a.Equal(tc.b) != tc.want || tc.b.Equal(tc.a) != tc.want {
				t.Errorf("%s\ngot %v and %v, want %v", tc.reason, tc.a.Equal(tc.b), tc.b.Equal(tc.a), tc.want)
			}
		})
	}
}

// TestCloneSharesNothing checks each field by reflection, including future ones.
func TestCloneSharesNothing(t *testing.T) {
	record := progress.Record{
		Started: &testTime, Stopped: &testTime, Delayed: &testTime, Purpose: ptr.To("create"),
		Retries: ptr.To(int64(1)),
		Success: ptr.To(true), Failure: ptr.To(false), Message: ptr.To("later"), Subrefs: []string{"a/x"},
		Succeeded: []string{"y"}, Awaited: ptr.To("a"), Until: &testTime, Trace: traceParent,
		Unknown: object{"future": list{"z"}},
	}
	clone := record.Clone()
	if diff := cmp.Diff(record, clone, cmpopts.IgnoreUnexported(progress.Record{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	of, other := reflect.ValueOf(record), reflect.ValueOf(clone)
	for i := range of.NumField() {
		field := of.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if of.Field(i).IsZero() {
			t.Errorf("%s: the test must set the field", field.Name)
		}
		if field.Type.Kind() == reflect.String {
			continue // it cannot be changed in place
		}
		if of.Field(i).Pointer() == other.Field(i).Pointer() {
			t.Errorf("%s is shared with the clone", field.Name)
		}
	}
}
