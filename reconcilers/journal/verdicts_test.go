package journal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/cause"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/execution"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/jsontext"
)

var (
	anHour = time.Date(2000, 1, 1, 2, 0, 0, 0, time.FixedZone("there", 3600))
	body   = map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"tier": "test"}},
		"spec":     map[string]any{"size": int64(3), "password": "hunter2"},
	}
)

// demanding is a handler with all that there may be: of a field, with patterns and filters.
func demanding() *handlers.Handler {
	return &handlers.Handler{
		ID: "h", Reason: cause.Update, Field: diff.Path{"spec", "size"},
		Words: requirements.Words{
			Value: "7", From: "8", To: "9", Filters: []requirements.Criterion{
				{Text: `WithLabel("tier", "prod")`, Path: diff.Path{"metadata", "labels", "tier"}},
				{Text: "When"},
				{Text: `WithAnnotation("a", Absent)`, Path: diff.Path{"metadata", "annotations", "a"}},
			},
		},
	}
}

// verdictOn notes one look with one verdict, and gives what is kept of it, and what people read.
func verdictOn(t *testing.T, j *journal.Journal, kind *journal.Kind, h *handlers.Handler, stop execution.Stop) (
	journal.Verdict, string,
) {
	t.Helper()
	d := kind.Object(w1, "u1").Look(&cause.Cause{Reason: cause.Create, Object: jsontext.Of(body)})
	d.Verdict(h, stop)
	d.Note()
	answers := explained(t, j, w1).Handlers
	if len(answers) != 1 || answers[0].Verdict == nil {
		t.Fatalf("want one answer with a verdict, got %+v", answers)
	}
	return *answers[0].Verdict, answers[0].Says
}

// Each reason not to call a handler is kept with what was expected and found, and has a sentence.
func TestVerdicts(t *testing.T) {
	utc := anHour.UTC()
	cases := map[string]struct {
		reason string
		stop   execution.Stop
		want   journal.Verdict
		says   string
	}{
		"none": {"the handler is called", execution.Stop{}, journal.Verdict{},
			"Selected at T, for a creation: it is running, or is next."},
		"other reason": {"both are causes",
			execution.Stop{Why: execution.OtherReason, Expected: cause.Update, Found: cause.Create},
			journal.Verdict{Expected: "update", Found: "create"}, "it handles updates, and this is a creation."},
		"not initial": {"it resumes", execution.Stop{Why: execution.NotInitial}, journal.Verdict{},
			"it handles the objects that existed when the operator started, once each; this one is new, " +
				"or was handled since."},
		"being deleted": {"it resumes", execution.Stop{Why: execution.BeingDeleted}, journal.Verdict{},
			"the object is being deleted, and the handler was registered without EvenIfDeleted."},
		"not held": {"nobody has a sentence for what does not come", execution.Stop{Why: execution.NotHeld},
			journal.Verdict{}, ": not held."},
		"unchanged": {"the value is told", execution.Stop{Why: execution.Unchanged, Found: int64(3)},
			journal.Verdict{Field: "spec.size", Expected: "a changed value", Found: "3"},
			"field spec.size has not changed: it is 3."},
		"other change": {"both patterns are told", execution.Stop{Why: execution.OtherChange, Found: int64(3)},
			journal.Verdict{Field: "spec.size", Expected: "from 8, to 9", Found: "3"},
			"field spec.size has not changed as required: expected from 8, to 9, found 3."},
		"other value": {"the pattern is told", execution.Stop{Why: execution.OtherValue},
			journal.Verdict{Field: "spec.size", Expected: "7", Found: "nothing"},
			"field spec.size does not have the required value: expected 7, found nothing."},
		"label": {"the filter says where it looks", execution.Stop{Why: execution.FilteredOut},
			journal.Verdict{
				Field: "metadata.labels.tier", Expected: `WithLabel("tier", "prod")`, Found: `"test"`,
			}, `its filter WithLabel("tier", "prod") does not match: found "test".`},
		"function": {"nobody knows what it looks at", execution.Stop{Why: execution.FilteredOut, Filter: 1},
			journal.Verdict{Expected: "When", Found: "false"}, "the function of When returned false."},
		"absent": {"there is no such place", execution.Stop{Why: execution.FilteredOut, Filter: 2},
			journal.Verdict{
				Field: "metadata.annotations.a", Expected: `WithAnnotation("a", Absent)`, Found: "nothing",
			}, `its filter WithAnnotation("a", Absent) does not match: found nothing.`},
		"filter without words": {"it is numbered as people count",
			execution.Stop{Why: execution.FilteredOut, Filter: 3}, journal.Verdict{Expected: "filter 4"},
			"the function of filter 4 returned false."},
		"finished": {"whatever came of it", execution.Stop{Why: execution.Finished}, journal.Verdict{},
			"it is finished with this change: it succeeded, or failed permanently."},
		"asleep": {"it is told until when", execution.Stop{Why: execution.Asleep, Until: anHour},
			journal.Verdict{Until: &utc}, "it waits for its next attempt, at 2000-01-01 01:00:00.000."},
		"asleep for long": {"nobody knows until when", execution.Stop{Why: execution.Asleep}, journal.Verdict{},
			"it waits for its next attempt."},
		"awaiting": {"the others are named",
			execution.Stop{Why: execution.Awaiting, Expected: []string{"a", "b"}}, journal.Verdict{Expected: "a, b"},
			"it waits for handlers that are not finished: a, b."},
		"unnamed others": {"what is not known is not told", execution.Stop{Why: execution.Awaiting}, journal.Verdict{},
			"it waits for handlers that are not finished: ."},
		"blocked": {"it is the object", execution.Stop{Why: execution.Blocked}, journal.Verdict{},
			"it cannot be called with the object, and waits until the object changes."},
		"missed": {"the others are named", execution.Stop{Why: execution.Missed, Expected: []string{"a"}},
			journal.Verdict{Expected: "a"}, "handlers that it depends on failed permanently: a."},
		"not picked": {"it comes later", execution.Stop{Why: execution.NotPicked}, journal.Verdict{},
			"it is due, but the lifecycle selected other handlers first."},
		"time is over": {"durations are told as people write them",
			execution.Stop{Why: execution.Exceeded, Expected: time.Minute, Found: 90 * time.Second},
			journal.Verdict{Expected: "1m0s", Found: "1m30s"}, "its limit is reached: 1m30s of 1m0s."},
		"too many": {"attempts are numbers", execution.Stop{Why: execution.Exceeded, Expected: 3, Found: 3},
			journal.Verdict{Expected: "3", Found: "3"}, "its limit is reached: 3 of 3."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := demanding()
			j := kept(journal.Limits{}, h)
			if c.stop.Why != "" {
				c.stop.By = "Adapter"
			}
			got, says := verdictOn(t, j, widgetsOf(j), h, c.stop)
			c.want.Handler, c.want.On, c.want.By, c.want.Why = "h", "update", c.stop.By, string(c.stop.Why)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
			if got := withoutTime(says); !strings.HasSuffix(got, c.says) {
				t.Errorf("%s: want %q, got %q", c.reason, c.says, got)
			}
		})
	}
}

// withoutTime has T in place of the first time.
func withoutTime(says string) string {
	before, after, found := strings.Cut(says, " at ")
	if !found {
		return says
	}
	return before + " at T" + after[len("2000-01-01 00:00:00.000"):]
}

// What has happened has a word for each reason; those that are no reasons of causes speak for themselves.
func TestReasonsInWords(t *testing.T) {
	cases := map[string]struct {
		reason          string
		expected, found any
		want            string
	}{
		"create": {"it has come", cause.Create, cause.Update, "it handles creations, and this is an update."},
		"delete": {"it goes", cause.Delete, cause.Delete, "it handles deletions, and this is a deletion."},
		"resume": {"the operator has come", cause.Update, cause.Resume,
			"it handles updates, and this is a resume without changes."},
		"noop": {"it is of no interest", cause.Update, cause.Noop,
			"it handles updates, and this is no essential change."},
		"free": {"nobody holds it up", cause.Delete, cause.Free,
			"it handles deletions, and this is a deletion that this operator does not block."},
		"other": {"nobody has a word for these", "dances", cause.Gone, "it handles dances, and this is gone."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := demanding()
			j := kept(journal.Limits{}, h)
			stop := execution.Stop{Why: execution.OtherReason, Expected: c.expected, Found: c.found}
			if _, says := verdictOn(t, j, widgetsOf(j), h, stop); !strings.HasSuffix(says, c.want) {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, says)
			}
		})
	}
}

// Demands that a handler does not have are not told; one of any value is.
func TestDemandsOfVerdicts(t *testing.T) {
	cases := map[string]struct {
		reason string
		words  requirements.Words
		why    execution.Why
		want   string
	}{
		"any":  {"the field has to be there", requirements.Words{}, execution.OtherValue, "any value"},
		"from": {"only that is demanded", requirements.Words{From: "8"}, execution.OtherChange, "from 8"},
		"to":   {"only that is demanded", requirements.Words{To: "9"}, execution.OtherChange, "to 9"},
		"long": {"its beginning will do", requirements.Words{Value: strings.Repeat("v", 61)}, execution.OtherValue,
			strings.Repeat("v", 60) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := &handlers.Handler{ID: "h", Field: diff.Path{"spec", "size"}, Words: c.words}
			j := kept(journal.Limits{}, h)
			if got, _ := verdictOn(t, j, widgetsOf(j), h, execution.Stop{Why: c.why}); got.Expected != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got.Expected)
			}
		})
	}
}

// Values are told in a few words, whatever their size.
func TestValuesInShort(t *testing.T) {
	sixty := strings.Repeat("x", 60)
	cases := map[string]struct {
		reason string
		value  any
		want   string
	}{
		"null":        {"it is as good as none", nil, "nothing"},
		"text":        {"in quotes, so that its ends can be seen", `a "b"`, `"a \"b\""`},
		"empty":       {"in quotes, so that it can be seen", "", `""`},
		"number":      {"as it is", int64(3), "3"},
		"fraction":    {"as it is", 1.5, "1.5"},
		"boolean":     {"as it is", true, "true"},
		"list":        {"its length will do", []any{"a", "b"}, "a list of 2"},
		"labels":      {"keys are sorted", map[string]any{"b": "1", "a": "2"}, `{"a":"2","b":"1"}`},
		"no labels":   {"there are none", map[string]any{}, "{}"},
		"mapping":     {"it may have anything in it", map[string]any{"a": int64(1), "b": "2"}, "a mapping of 2"},
		"many labels": {"its size will do", map[string]any{"a": sixty[:30], "b": sixty[:29]}, "a mapping of 2"},
		"some labels": {"they just fit", map[string]any{"a": sixty[:58], "b": ""}, `{"a":"` + sixty[:58] + `","b":""}`},
		"fits":        {"sixty bytes are few", sixty, `"` + sixty + `"`},
		"long":        {"more are many", sixty + "y", `"` + sixty + `…"`},
		"long number": {"it is no text, and may be anything", strings.Split(sixty, ""),
			"[" + strings.Repeat("x ", 29) + "x…"},
		"runes":       {"none is cut into pieces", sixty[:59] + "ä", `"` + sixty[:59] + `…"`},
		"last rune":   {"it ends where the text is cut", sixty[:58] + "äx", `"` + sixty[:58] + `ä…"`},
		"three bytes": {"none is cut into pieces", sixty[:58] + "€x", `"` + sixty[:58] + `…"`},
		"no runes":    {"it is not for ever", strings.Repeat("\x80", 61), `"…"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := demanding()
			j := kept(journal.Limits{}, h)
			stop := execution.Stop{Why: execution.OtherValue, Found: c.value}
			if got, _ := verdictOn(t, j, widgetsOf(j), h, stop); got.Found != c.want {
				t.Errorf("%s: want %s, got %s", c.reason, c.want, got.Found)
			}
		})
	}
}

// Nothing is kept of values that are redacted, nor of what a registration demands of them: their places alone.
func TestSecretValues(t *testing.T) {
	const hidden = "(secret)"
	cases := map[string]struct {
		reason string
		kind   string
		secret []diff.Path
		hidden bool
	}{
		"none":     {"nothing is secret", "Widget.example.org", nil, false},
		"at":       {"it is the very field", "Widget.example.org", []diff.Path{{"spec", "size"}}, true},
		"above":    {"the field is in it", "Widget.example.org", []diff.Path{{"spec"}}, true},
		"below":    {"it is in the field", "Widget.example.org", []diff.Path{{"spec", "size", "x"}}, true},
		"beside":   {"it is another one", "Widget.example.org", []diff.Path{{"spec", "sizes"}}, false},
		"second":   {"each of them counts", "Widget.example.org", []diff.Path{{"a"}, {"spec"}}, true},
		"whole":    {"the whole object", "Widget.example.org", []diff.Path{nil}, true},
		"Secrets":  {"they are secret, whoever says what", "Secret", nil, true},
		"narrower": {"they are secret as a whole", "Secret", []diff.Path{{"spec", "sizes"}}, true},
		"others":   {"only those of Kubernetes are known to be secret", "Secret.example.org", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := demanding()
			h.Words.Filters[0] = requirements.Criterion{Text: "WithField(3)", Path: diff.Path{"spec", "size"}}
			j := journal.New(journal.Limits{})
			standing := serving(h)
			standing.Kinds[0].Kind, standing.Kinds[0].Group, _ = strings.Cut(c.kind, ".")
			j.Watch(standing)
			kind := j.Kind(standing.Kinds[0].GroupKind(), c.secret)
			for _, why := range []execution.Why{
				execution.OtherValue, execution.Unchanged, execution.OtherChange, execution.FilteredOut,
			} {
				got, says := verdictOn(t, j, kind, h, execution.Stop{Why: why, Found: int64(3)})
				if got.Field != "spec.size" || (got.Expected == hidden && got.Found == hidden) != c.hidden {
					t.Errorf("%s: %s: want it hidden: %t; got %+v", c.reason, why, c.hidden, got)
				}
				if c.hidden && strings.ContainsAny(withoutTime(says), "36789") {
					t.Errorf("%s: %s: a value is told: %s", c.reason, why, says)
				}
			}
		})
	}
}
