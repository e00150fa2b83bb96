package journal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/internal/jsontext"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

var (
	testTime = time.Date(2000, 1, 1, 2, 0, 0, 0, time.FixedZone("there", 3600))
	body     = map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"tier": "test"}},
		"spec":     map[string]any{"size": int64(3), "password": "hunter2"},
	}
)

// newDemandingHandler returns a handler with all sorts of conditions: a field, patterns and filters.
func newDemandingHandler() *handlers.Handler {
	return &handlers.Handler{
		ID: "h", Reason: cause.Update, Field: diff.Path{"spec", "size"},
		FilterDescriptions: handlers.Words{
			Value: "7", From: "8", To: "9", Filters: []handlers.Criterion{
				{Text: `WithLabel("tier", "prod")`, Path: diff.Path{"metadata", "labels", "tier"}},
				{Text: "When"},
				{Text: `WithAnnotation("a", Absent)`, Path: diff.Path{"metadata", "annotations", "a"}},
			},
		},
	}
}

// recordVerdict notes one evaluation with one verdict, and returns the kept verdict and its sentence.
func recordVerdict(t *testing.T, j *journal.Journal, kind *journal.KindJournal, h *handlers.Handler,
	stop execution.Stop) (
	journal.HandlerVerdict, string,
) {
	t.Helper()
	d := kind.ForObject(w1, "u1").StartEvaluation(&cause.Cause{Reason: cause.Create,
		Object: jsontext.NewFromValue(body)})
	d.AddVerdict(h, stop)
	d.AddToJournal()
	answers := explainObject(t, j, w1).Handlers
	if len(answers) != 1 || answers[0].Verdict == nil {
		t.Fatalf("want one answer with a verdict, got %+v", answers)
	}
	return *answers[0].Verdict, answers[0].Text
}

// TestVerdicts shows that each cause not to call a handler is kept with the expected and the found value, and has a
// sentence.
func TestVerdicts(t *testing.T) {
	utc := testTime.UTC()
	cases := map[string]struct {
		reason string
		stop   execution.Stop
		want   journal.HandlerVerdict
		says   string
	}{
		"none": {"a selected handler has no cause", execution.Stop{}, journal.HandlerVerdict{},
			"Selected at T, for a creation: it is running, or is next."},
		"other reason": {"another cause is described with both causes",
			execution.Stop{Reason: execution.OtherReason, Expected: cause.Update, Found: cause.Create},
			journal.HandlerVerdict{Expected: "update", Found: "create"}, "it handles updates, and this is a creation."},
		"not initial": {"a resume handler without a listed object has its own sentence",
			execution.Stop{Reason: execution.NotInitial}, journal.HandlerVerdict{},
			"it handles the objects that existed when the operator started, once each; this one is new, " +
				"or was handled since."},
		"being deleted": {"a resume handler for an object in deletion has its own sentence",
			execution.Stop{Reason: execution.BeingDeleted}, journal.HandlerVerdict{},
			"the object is being deleted, and the handler was registered without EvenIfDeleted."},
		"not held": {"a cause without a sentence is printed as its name",
			execution.Stop{Reason: execution.FinalizerNotNeeded},
			journal.HandlerVerdict{}, ": not held."},
		"unchanged": {"an unchanged field is described with its value",
			execution.Stop{Reason: execution.Unchanged, Found: int64(3)},
			journal.HandlerVerdict{Field: "spec.size", Expected: "a changed value", Found: "3"},
			"field spec.size has not changed: it is 3."},
		"other change": {"another change is described with both patterns",
			execution.Stop{Reason: execution.OtherChange, Found: int64(3)},
			journal.HandlerVerdict{Field: "spec.size", Expected: "from 8, to 9", Found: "3"},
			"field spec.size has not changed as required: expected from 8, to 9, found 3."},
		"other value": {"another value is described with its pattern", execution.Stop{Reason: execution.OtherValue},
			journal.HandlerVerdict{Field: "spec.size", Expected: "7", Found: "nothing"},
			"field spec.size does not have the required value: expected 7, found nothing."},
		"label": {"a filter of a label is described with its place and the found value",
			execution.Stop{Reason: execution.FilteredOut},
			journal.HandlerVerdict{
				Field: "metadata.labels.tier", Expected: `WithLabel("tier", "prod")`, Found: `"test"`,
			}, `its filter WithLabel("tier", "prod") does not match: found "test".`},
		"function": {"a filter function is described with its result",
			execution.Stop{Reason: execution.FilteredOut, Filter: 1},
			journal.HandlerVerdict{Expected: "When", Found: "false"}, "the function of When returned false."},
		"absent": {"a filter of a missing annotation is described with nothing as the found value",
			execution.Stop{Reason: execution.FilteredOut, Filter: 2},
			journal.HandlerVerdict{
				Field: "metadata.annotations.a", Expected: `WithAnnotation("a", Absent)`, Found: "nothing",
			}, `its filter WithAnnotation("a", Absent) does not match: found nothing.`},
		"filter without words": {"a filter without words is described by its number, from one",
			execution.Stop{Reason: execution.FilteredOut, Filter: 3}, journal.HandlerVerdict{Expected: "filter 4"},
			"the function of filter 4 returned false."},
		"finished": {"a finished handler has its own sentence",
			execution.Stop{Reason: execution.Finished}, journal.HandlerVerdict{},
			"it is finished with this change: it succeeded, or failed permanently."},
		"asleep": {"a waiting handler is described with its next attempt",
			execution.Stop{Reason: execution.Asleep, Until: testTime},
			journal.HandlerVerdict{Until: &utc}, "it waits for its next attempt, at 2000-01-01 01:00:00.000."},
		"asleep for long": {"a waiting handler without a known time is described without one",
			execution.Stop{Reason: execution.Asleep}, journal.HandlerVerdict{},
			"it waits for its next attempt."},
		"awaiting": {"a handler that waits for others is described with their names",
			execution.Stop{Reason: execution.DependencyUnfinished, Expected: []string{"a", "b"}},
			journal.HandlerVerdict{Expected: "a, b"},
			"it waits for handlers that are not finished: a, b."},
		"unnamed others": {"a handler that waits for unnamed others is described without names",
			execution.Stop{Reason: execution.DependencyUnfinished}, journal.HandlerVerdict{},
			"it waits for handlers that are not finished: ."},
		"blocked": {"a blocked handler is described as waiting for a change",
			execution.Stop{Reason: execution.Blocked}, journal.HandlerVerdict{},
			"it cannot be called with the object, and waits until the object changes."},
		"missed": {"a handler with failed dependencies is described with their names",
			execution.Stop{Reason: execution.DependencyFailed, Expected: []string{"a"}},
			journal.HandlerVerdict{Expected: "a"}, "handlers that it depends on failed permanently: a."},
		"not picked": {"a handler that was not picked is described as due",
			execution.Stop{Reason: execution.NotPicked}, journal.HandlerVerdict{},
			"it is due, but the lifecycle selected other handlers first."},
		"time is over": {"an exceeded timeout is described with durations",
			execution.Stop{Reason: execution.Exceeded, Expected: time.Minute, Found: 90 * time.Second},
			journal.HandlerVerdict{Expected: "1m0s", Found: "1m30s"}, "its limit is reached: 1m30s of 1m0s."},
		"too many": {"exceeded retries are described with numbers",
			execution.Stop{Reason: execution.Exceeded, Expected: 3, Found: 3},
			journal.HandlerVerdict{Expected: "3", Found: "3"}, "its limit is reached: 3 of 3."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newDemandingHandler()
			j := newServingJournal(journal.RetentionLimits{}, h)
			if c.stop.Reason != "" {
				c.stop.Adapter = "Adapter"
			}
			got, says := recordVerdict(t, j, widgetsOf(j), h, c.stop)
			c.want.Handler, c.want.Purpose, c.want.Adapter, c.want.Reason = "h", "update", c.stop.Adapter,
				string(c.stop.Reason)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s; -want, +got:\n%s", c.reason, d)
			}
			if got := withoutTime(says); !strings.HasSuffix(got, c.says) {
				t.Errorf("%s: want %q, got %q", c.reason, c.says, got)
			}
		})
	}
}

// withoutTime replaces the first time by T.
func withoutTime(says string) string {
	before, after, found := strings.Cut(says, " at ")
	if !found {
		return says
	}
	return before + " at T" + after[len("2000-01-01 00:00:00.000"):]
}

// TestReasonsInWords shows the words for each cause. An unknown cause is printed as it is.
func TestReasonsInWords(t *testing.T) {
	cases := map[string]struct {
		reason          string
		expected, found any
		want            string
	}{
		"create": {"a creation and an update have words", cause.Create, cause.Update, "it handles creations, and " +
			"this is an update."},
		"delete": {"a deletion has words", cause.Delete, cause.Delete, "it handles deletions, and this is a deletion."},
		"resume": {"a resume has words", cause.Update, cause.Resume,
			"it handles updates, and this is a resume without changes."},
		"noop": {"a pass without changes has words", cause.Update, cause.Noop,
			"it handles updates, and nothing essential has changed."},
		"free": {"a deletion that is not blocked has words", cause.Delete, cause.Free,
			"it handles deletions, and this is a deletion that this operator does not block."},
		"other": {"unknown causes are printed as they are",
			"dances", cause.Gone, "it handles dances, and this is gone."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newDemandingHandler()
			j := newServingJournal(journal.RetentionLimits{}, h)
			stop := execution.Stop{Reason: execution.OtherReason, Expected: c.expected, Found: c.found}
			if _, says := recordVerdict(t, j, widgetsOf(j), h, stop); !strings.HasSuffix(says, c.want) {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, says)
			}
		})
	}
}

// TestDemandsOfVerdicts shows that only the conditions of a handler are described, and that a field without a pattern
// needs any value.
func TestDemandsOfVerdicts(t *testing.T) {
	cases := map[string]struct {
		reason string
		words  handlers.Words
		why    execution.SkipReason
		want   string
	}{
		"any": {"a field without a pattern expects any value",
			handlers.Words{}, execution.OtherValue, "any value"},
		"from": {"a pattern of the old value is described alone",
			handlers.Words{From: "8"}, execution.OtherChange, "from 8"},
		"to": {"a pattern of the new value is described alone",
			handlers.Words{To: "9"}, execution.OtherChange, "to 9"},
		"long": {"a long pattern is cut", handlers.Words{Value: strings.Repeat("v", 61)}, execution.OtherValue,
			strings.Repeat("v", 60) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := &handlers.Handler{ID: "h", Field: diff.Path{"spec", "size"}, FilterDescriptions: c.words}
			j := newServingJournal(journal.RetentionLimits{}, h)
			if got, _ := recordVerdict(t, j, widgetsOf(j), h, execution.Stop{Reason: c.why}); got.Expected != c.want {
				t.Errorf("%s: want %q, got %q", c.reason, c.want, got.Expected)
			}
		})
	}
}

// TestValuesInShort shows that values are described in a few words, whatever their size.
func TestValuesInShort(t *testing.T) {
	sixty := strings.Repeat("x", 60)
	cases := map[string]struct {
		reason string
		value  any
		want   string
	}{
		"null":     {"null is described as nothing", nil, "nothing"},
		"text":     {"a text is quoted", `a "b"`, `"a \"b\""`},
		"empty":    {"an empty text is quoted", "", `""`},
		"number":   {"a number is printed as it is", int64(3), "3"},
		"fraction": {"a fraction is printed as it is", 1.5, "1.5"},
		"boolean":  {"a boolean is printed as it is", true, "true"},
		"list":     {"a list is described by its length", []any{"a", "b"}, "a list of 2"},
		"labels": {"a small mapping of texts is printed with sorted keys",
			map[string]any{"b": "1", "a": "2"}, `{"a":"2","b":"1"}`},
		"no labels": {"an empty mapping is printed", map[string]any{}, "{}"},
		"mapping": {"a mapping of other values is described by its size",
			map[string]any{"a": int64(1), "b": "2"}, "a mapping of 2"},
		"many labels": {"a mapping that is too long is described by its size",
			map[string]any{"a": sixty[:30], "b": sixty[:29]}, "a mapping of 2"},
		"some labels": {"a mapping of the maximal length is printed",
			map[string]any{"a": sixty[:58], "b": ""}, `{"a":"` + sixty[:58] + `","b":""}`},
		"fits": {"a text of sixty bytes is printed", sixty, `"` + sixty + `"`},
		"long": {"a text of more than sixty bytes is cut", sixty + "y", `"` + sixty + `…"`},
		"long number": {"a value of an unknown type is cut", strings.Split(sixty, ""),
			"[" + strings.Repeat("x ", 29) + "x…"},
		"runes":     {"a character that does not fit is left out", sixty[:59] + "ä", `"` + sixty[:59] + `…"`},
		"last rune": {"a character that just fits is kept", sixty[:58] + "äx", `"` + sixty[:58] + `ä…"`},
		"three bytes": {"a character of three bytes that does not fit is left out",
			sixty[:58] + "€x", `"` + sixty[:58] + `…"`},
		"no runes": {"a text without a valid character is cut to nothing", strings.Repeat("\x80", 61), `"…"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newDemandingHandler()
			j := newServingJournal(journal.RetentionLimits{}, h)
			stop := execution.Stop{Reason: execution.OtherValue, Found: c.value}
			if got, _ := recordVerdict(t, j, widgetsOf(j), h, stop); got.Found != c.want {
				t.Errorf("%s: want %s, got %s", c.reason, c.want, got.Found)
			}
		})
	}
}

// TestSecretValues shows that neither the values of redacted fields nor the conditions on them are kept, only their
// paths.
func TestSecretValues(t *testing.T) {
	const hidden = "(secret)"
	cases := map[string]struct {
		reason string
		kind   string
		secret []diff.Path
		hidden bool
	}{
		"none": {"without redacted fields the values are kept", "Widget.example.org", nil, false},
		"at": {"the value of a redacted field is hidden",
			"Widget.example.org", []diff.Path{{"spec", "size"}}, true},
		"above": {"a field below a redacted one is hidden", "Widget.example.org", []diff.Path{{"spec"}}, true},
		"below": {"a field above a redacted one is hidden",
			"Widget.example.org", []diff.Path{{"spec", "size", "x"}}, true},
		"beside": {"a field beside a redacted one is kept",
			"Widget.example.org", []diff.Path{{"spec", "sizes"}}, false},
		"second":  {"each redacted path counts", "Widget.example.org", []diff.Path{{"a"}, {"spec"}}, true},
		"whole":   {"all fields of a redacted object are hidden", "Widget.example.org", []diff.Path{nil}, true},
		"Secrets": {"all fields of a Secret are hidden without any settings", "Secret", nil, true},
		"narrower": {"all fields of a Secret are hidden even if a path is given",
			"Secret", []diff.Path{{"spec", "sizes"}}, true},
		"others": {"a custom kind named Secret is kept", "Secret.example.org", nil, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newDemandingHandler()
			h.FilterDescriptions.Filters[0] = handlers.Criterion{Text: "WithField(3)",
				Path: diff.Path{"spec", "size"}}
			j := journal.New(journal.RetentionLimits{})
			standing := newServingState(h)
			standing.Kinds[0].Kind, standing.Kinds[0].Group, _ = strings.Cut(c.kind, ".")
			j.SetLive(standing)
			kind := j.ForKind(standing.Kinds[0].GroupKind(), c.secret)
			for _, why := range []execution.SkipReason{
				execution.OtherValue, execution.Unchanged, execution.OtherChange, execution.FilteredOut,
			} {
				got, says := recordVerdict(t, j, kind, h, execution.Stop{Reason: why, Found: int64(3)})
				if got.Field != "spec.size" || (got.Expected == hidden && got.Found == hidden) != c.hidden {
					t.Errorf("%s: %s: want hidden %t; got %+v", c.reason, why, c.hidden, got)
				}
				if c.hidden && strings.ContainsAny(withoutTime(says), "36789") {
					t.Errorf("%s: %s: a value is printed: %s", c.reason, why, says)
				}
			}
		})
	}
}
