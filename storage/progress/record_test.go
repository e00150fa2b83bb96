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

var moment = time.Date(2024, 5, 6, 7, 8, 9, 123_456_000, time.UTC)

func TestDecodeRecordErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string
		value  any
	}{
		"TimeAsNumber":     {reason: "The unit would be a guess.", key: "started", value: int64(1)},
		"TimeAsGarbage":    {reason: "It is no time.", key: "stopped", value: "yesterday"},
		"EmptyTime":        {reason: "It is no time.", key: "delayed", value: ""},
		"PurposeAsNumber":  {reason: "Purposes are words.", key: "purpose", value: int64(1)},
		"RetriesAsText":    {reason: "It could be anything.", key: "retries", value: "three"},
		"RetriesAsBoolean": {reason: "True is not 1 here.", key: "retries", value: true},
		"RetriesHalf":      {reason: "An attempt is made or not.", key: "retries", value: 1.5},
		"RetriesNegative":  {reason: "There are never less than none.", key: "retries", value: int64(-1)},
		"RetriesNaN":       {reason: "It is no number.", key: "retries", value: math.NaN()},
		"RetriesHuge":      {reason: "It does not fit.", key: "retries", value: 1e300},
		"SuccessAsNumber":  {reason: "1 is not true here.", key: "success", value: int64(1)},
		"FailureAsText":    {reason: "It could be anything.", key: "failure", value: "false"},
		"MessageAsObject":  {reason: "It is to be shown.", key: "message", value: object{}},
		"SubrefsAsText":    {reason: "It would be one id, or many.", key: "subrefs", value: "fn/a"},
		"SubrefsAsNumbers": {reason: "Ids are text.", key: "subrefs", value: list{"fn/a", int64(1)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := progress.DecodeRecord(object{tc.key: tc.value})
			if err == nil || !strings.Contains(err.Error(), "key "+tc.key) {
				t.Errorf("%s\ngot %v and error %v, want one that names the key", tc.reason, record.Fields(), err)
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
		"Empty": {reason: "Every key is optional.", fields: object{}},
		"Nulls": {
			reason: "A null says nothing.",
			fields: object{
				"started": nil, "purpose": nil, "retries": nil, "success": nil, "message": nil, "subrefs": nil,
			},
		},
		"Full": {
			reason: "All keys are known.",
			fields: object{
				"started": "2024-05-06T07:08:09.123456+00:00", "stopped": "2024-05-06T09:08:09.123456+02:00",
				"delayed": "2024-05-06T07:08:09.123456", "purpose": "create", "retries": int64(3), "success": true,
				"failure": false, "message": "later", "subrefs": list{"fn/a", "fn/b"},
			},
			want: progress.Record{
				Started: &moment, Stopped: &moment, Delayed: &moment, Purpose: ptr.To("create"),
				Retries: ptr.To(int64(3)),
				Success: ptr.To(true), Failure: ptr.To(false), Message: ptr.To("later"), Subrefs: []string{
					"fn/a", "fn/b",
				},
			},
		},
		"Float": {
			reason: "It is a whole number, whoever wrote it.",
			fields: object{"retries": 3.0},
			want:   progress.Record{Retries: ptr.To(int64(3))},
		},
		"Zeroes": {
			reason: "They are there, unlike absent keys.",
			fields: object{"retries": int64(0), "success": false, "purpose": "", "message": "", "subrefs": list{}},
			want: progress.Record{
				Retries: ptr.To(int64(0)), Success: ptr.To(false), Purpose: ptr.To(""), Message: ptr.To(""),
				Subrefs: []string{},
			},
		},
		"Unknown": {
			reason: "What others add does not matter.",
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

// A record is stored as it came, but a new one replaces all of what was there.
func TestRecordFields(t *testing.T) {
	nulls := object{
		"started": nil, "stopped": nil, "delayed": nil, "purpose": nil, "retries": nil, "success": nil, "failure": nil,
		"message": nil, "subrefs": nil,
	}
	if delta := cmp.Diff(nulls, progress.Record{}.Fields()); delta != "" {
		t.Errorf("a new record has a null for every nil field, -want, +got:\n%s", delta)
	}
	read := object{"retries": int64(1), "message": nil, "color": "red"}
	record, err := progress.DecodeRecord(read)
	if err != nil {
		t.Fatalf("cannot decode: %v", err)
	}
	if delta := cmp.Diff(read, record.Fields()); delta != "" {
		t.Errorf("a record that was read is as it came, -want, +got:\n%s", delta)
	}
	local := moment.In(time.FixedZone("east", 2*60*60)).Add(999)
	if delta := cmp.Diff(
		"2024-05-06T07:08:09.123456+00:00", (progress.Record{Started: &local}).Fields()["started"],
	); delta != "" {
		t.Errorf("times are in UTC, to the microsecond, -want, +got:\n%s", delta)
	}
}

// What was read in a form of its own is written anew even if nothing has changed: others read our form alone.
func TestForeign(t *testing.T) {
	const own, respelled = "2024-05-06T07:08:09.123456+00:00", "2024-05-06T07:08:09.123456"
	cases := map[string]struct {
		reason          string
		record          string
		inText, inField bool
	}{
		"Own": {reason: "It is as we write it.", record: `{"started":"` + own + `","retries":1}`},
		"Respelled": {
			reason: "The same time is written otherwise.", record: `{"started":"` + respelled + `"}`,
			inText: true, inField: true,
		},
		"OneOfTwo": {
			reason: "One time is enough, wherever it stands.",
			record: `{"started":"` + respelled + `","stopped":"` + own + `"}`, inText: true, inField: true,
		},
		"UnknownKey": {
			reason: "A text is replaced as a whole, and is to have no other keys; fields are merged.",
			record: `{"retries":1,"color":"red"}`, inText: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inText, err := progress.Annotations{}.Fetch(annotated(object{"kopf.zalando.org/fn": tc.record}), "fn")
			if err != nil {
				t.Fatalf("fetching the annotation: %v", err)
			}
			fields, err := storage.Parse(tc.record)
			if err != nil {
				t.Fatalf("parsing the record: %v", err)
			}
			inField, err := progress.DecodeRecord(fields)
			if err != nil {
				t.Fatalf("decoding the fields: %v", err)
			}
			if got := []bool{inText.Foreign(), inField.Foreign()}; !cmp.Equal([]bool{tc.inText, tc.inField}, got) {
				t.Errorf("%s\ngot %v as text and as fields, want %v and %v", tc.reason, got, tc.inText, tc.inField)
			}
		})
	}
}

func TestRecordEqual(t *testing.T) {
	later := moment.Add(time.Microsecond)
	nearly := moment.Add(time.Nanosecond).In(time.FixedZone("east", 2*60*60))
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
			reason: "It tells when time is up.", a: progress.Record{Started: &moment},
			b: progress.Record{Started: &later},
		},
		"NoStarted": {reason: "Absent is now.", a: progress.Record{Started: &moment}},
		"Stopped":   {reason: "It is told.", a: progress.Record{Stopped: &moment}, b: progress.Record{Stopped: &later}},
		"Delayed": {
			reason: "The call is at another time.", a: progress.Record{Delayed: &moment},
			b: progress.Record{Delayed: &later},
		},
		"Purpose": {
			reason: "It is another cause.", a: progress.Record{Purpose: ptr.To("create")},
			b: progress.Record{Purpose: ptr.To("update")},
		},
		"Retries": {
			reason: "There was an attempt.", a: progress.Record{Retries: ptr.To(int64(1))},
			b: progress.Record{Retries: ptr.To(int64(2))},
		},
		"NoRetries": {reason: "A default is not absent.", a: progress.Record{Retries: ptr.To(int64(0))}},
		"Success": {
			reason: "It is done.", a: progress.Record{Success: ptr.To(false)},
			b: progress.Record{Success: ptr.To(true)},
		},
		"Failure": {
			reason: "It is given up.", a: progress.Record{Failure: ptr.To(false)},
			b: progress.Record{Failure: ptr.To(true)},
		},
		"Message": {
			reason: "It is told.", a: progress.Record{Message: ptr.To("a")}, b: progress.Record{Message: ptr.To("b")},
		},
		"Subrefs": {
			reason: "There is more to be purged.", a: progress.Record{Subrefs: []string{"a"}},
			b: progress.Record{Subrefs: []string{"a", "b"}},
		},
		"NoSubrefs": {reason: "An empty list is not absent.", a: progress.Record{Subrefs: []string{}}},
		"Nothing":   {reason: "Neither says anything.", want: true},
		"Unknown":   {reason: "What is unknown, or null, says nothing.", a: unknown, want: true},
		"Nearly": {
			reason: "What is below a microsecond is not stored, and the offset means nothing.",
			a:      progress.Record{Started: &moment}, b: progress.Record{Started: &nearly}, want: true,
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

// TestCloneSharesNothing looks at every field, also at those that are added some day.
func TestCloneSharesNothing(t *testing.T) {
	record := progress.Record{
		Started: &moment, Stopped: &moment, Delayed: &moment, Purpose: ptr.To("create"), Retries: ptr.To(int64(1)),
		Success: ptr.To(true), Failure: ptr.To(false), Message: ptr.To("later"), Subrefs: []string{"a/x"},
		Succeeded: []string{"y"}, Awaited: ptr.To("a"), Until: &moment, Trace: span,
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
			t.Errorf("%s: the test does not fill it", field.Name)
		}
		if field.Type.Kind() == reflect.String {
			continue // it cannot be changed in place
		}
		if of.Field(i).Pointer() == other.Field(i).Pointer() {
			t.Errorf("%s is shared", field.Name)
		}
	}
}
