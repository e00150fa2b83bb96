package journal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/internal/cause"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/execution"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

func servedAs(group, version, kind, plural string, namespaced bool, shortcuts ...string) journal.ServedKind {
	s := widgetsOf(journal.New(journal.RetentionLimits{})).ServedKind(discovery.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Plural:           plural, Singular: strings.ToLower(kind), Shortcuts: shortcuts, Namespaced: namespaced,
	}, nil)
	s.Namespaces = []string{""}
	return s
}

// TestKindsInWords shows that a kind has all names that kubectl accepts. Others are errors that list the candidates.
func TestKindsInWords(t *testing.T) {
	all := fixedState{Operator: "test.example.org", Running: true, Kinds: []journal.ServedKind{
		servedAs("example.org", "v1", "Widget", "widgets", true, "wd", "wgt"),
		servedAs("other.org", "v1", "Widget", "widgets", true),
		servedAs("", "v1", "Node", "nodes", false, "no"),
		servedAs("example.org", "v1", "Nameless", "", true),
	}}
	waiting := fixedState{Operator: "test.example.org", AbsentHandlers: []journal.AbsentHandler{
		{Handler: "a", Selector: "gadgets"}, {Handler: "b", Selector: "gadgets"}, {Handler: "c", Selector: "gizmos"},
	}}
	both := fixedState{Operator: "test.example.org", Kinds: all.Kinds[2:3], AbsentHandlers: waiting.AbsentHandlers}
	const widget = "Widget.example.org"
	cases := map[string]struct {
		reason string
		of     fixedState
		word   string
		want   string // the kind, or the error
	}{
		"kind":        {"a kind is found by the name of manifests", all, "Nameless", "Nameless.example.org"},
		"any case":    {"a kind is found in any letter case", all, "NODE", "Node"},
		"plural":      {"a kind is found by its plural", all, "nodes", "Node"},
		"short name":  {"a kind is found by a short name", all, "wgt", widget},
		"first short": {"a kind is found by its first short name", all, "WD", widget},
		"group":       {"a plural with a group is unambiguous", all, "widgets.example.org", widget},
		"other group": {"a kind with a group is unambiguous", all, "Widget.other.org", "Widget.other.org"},
		"version": {"a plural with a version and a group is accepted",
			all, "widgets.v1.example.org", widget},
		"short name with group": {"a short name with a group is accepted", all, "wd.example.org", widget},
		"several": {"an ambiguous kind is an error that lists the candidates", all, "widget",
			`"widget" is ambiguous: use one of Widget.example.org, Widget.other.org`},
		"none": {"an unknown kind is an error that lists the served ones",
			all, "gadget", `operator "test.example.org" does not serve kind ` +
				`"gadget": it serves Widget.example.org, Widget.other.org, Node, Nameless.example.org`},
		"other version": {"a version that is not served is an error", all, "nodes.v2.", `operator ` +
			`"test.example.org" does not serve kind "nodes.v2.": ` +
			`it serves Widget.example.org, Widget.other.org, Node, Nameless.example.org`},
		"empty": {"an empty word does not match a kind without a plural", all, "",
			`operator "test.example.org" does not serve kind "": ` +
				`it serves Widget.example.org, Widget.other.org, Node, Nameless.example.org`},
		"waiting": {"an unknown kind is an error that lists the kinds handlers wait for", waiting, "gadget",
			`operator "test.example.org" does not serve kind "gadget": ` +
				`its handlers wait until the cluster serves gadgets, gizmos`},
		"both": {"an unknown kind is an error that lists served and missing kinds",
			both, "gadget", `operator "test.example.org" does not serve kind "gadget": ` +
				`it serves Node; its handlers wait until the cluster serves gadgets, gizmos`},
		"nothing": {"without served kinds, an unknown kind is an error that says so", fixedState{}, "gadget",
			`operator "" does not serve kind "gadget": it does not serve any kind at the moment`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := journal.New(journal.RetentionLimits{})
			j.SetLive(c.of)
			e, err := j.Explain(c.word, w1)
			got := e.Kind
			var question *journal.QuestionError
			if errors.As(err, &question) {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s: want %q, got %q and error %v", c.reason, c.want, got, err)
			}
		})
	}
}

// TestNamespaces shows that a namespace is required for namespaced kinds and ignored for cluster-scoped ones.
func TestNamespaces(t *testing.T) {
	j := journal.New(journal.RetentionLimits{})
	j.SetLive(fixedState{Operator: "test.example.org", Kinds: []journal.ServedKind{
		servedAs("example.org", "v1", "Widget", "widgets", true), servedAs("", "v1", "Node", "nodes", false),
	}})
	_, err := j.Explain("widget", types.NamespacedName{Name: "w1"})
	var question *journal.QuestionError
	const want = "kind Widget.example.org is namespaced: use widget NAMESPACE/w1"
	if !errors.As(err, &question) || err.Error() != want {
		t.Errorf("without a namespace: want %q, got %v", want, err)
	}
	node := types.NamespacedName{Name: "n1"}
	j.ForKind(schema.GroupKind{Kind: "Node"}, nil).ForObject(node, "u1").RecordEvent("ADDED", "1")
	e, err := j.Explain("node", types.NamespacedName{Namespace: "ns", Name: "n1"})
	if err != nil || e.Namespace != "" || e.Name != "n1" || len(e.History) != 1 {
		t.Errorf("a cluster-scoped object must ignore the namespace: got %+v with error %v", e, err)
	}
}

// TestStandingWithoutOperator shows that a journal without an operator reports an empty state.
func TestStandingWithoutOperator(t *testing.T) {
	got := journal.New(journal.RetentionLimits{}).OperatorState()
	if d := cmp.Diff(journal.OperatorState{}, got, cmp.AllowUnexported(journal.ServedKind{})); d != "" {
		t.Errorf("-want, +got:\n%s", d)
	}
}

// TestWhatHoldsNow shows the remarks of an explanation on the present state of the operator and the object.
func TestWhatHoldsNow(t *testing.T) {
	event := func(o journal.ObjectJournal) { o.RecordEvent("ADDED", "1") }
	look := func(reason cause.Reason) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) { o.StartEvaluation(&cause.Cause{Reason: reason}).AddToJournal() }
	}
	attempt := func(h *handlers.Handler) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) { o.RecordAttempt(attemptOf(h, 0, execution.Outcome{Final: true})) }
	}
	background := func(o journal.ObjectJournal) { o.StartBackgroundEvaluation(&cause.Cause{}).AddToJournal() }
	refused := func(o journal.ObjectJournal) {
		d := o.StartEventEvaluation(&cause.Cause{})
		d.AddVerdict(&handlers.Handler{ID: "e"}, execution.Stop{Reason: execution.FilteredOut})
		d.AddToJournal()
	}
	hold := func(why string, until time.Time) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) { o.RecordHold(why, errQuota, until) }
	}
	soon := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	daemon := &handlers.Handler{ID: "d", Family: handlers.Background,
		Background: &handlers.BackgroundOptions{Daemon: true}}
	timer := &handlers.Handler{ID: "t", Family: handlers.Background}
	onEvent := &handlers.Handler{ID: "e", Family: handlers.Watching}
	index := &handlers.Handler{ID: "i", Family: handlers.Indexing}
	child := &handlers.Handler{ID: "c", Family: handlers.Child}
	create := &handlers.Handler{ID: "h", Reason: cause.Create}
	const noop = "The last evaluation, at 2000-01-01 00:00:00.000, found no essential change: the status, and " +
		"metadata of Kubernetes and other operators, do not count."
	const unknown = "The operator has no record of the object: it does not exist, or the watch has not delivered it " +
		"yet, or at least 7 other objects changed since its last change."
	cases := map[string]struct {
		reason  string
		stand   func(l *fixedState)
		happens []func(journal.ObjectJournal)
		want    []string
	}{
		"well": {"a known object of an active operator has no remark", nil, []func(journal.ObjectJournal){event}, nil},
		"idle": {"an inactive operator has this remark alone",
			func(l *fixedState) { l.Running, l.Paused, l.UnlistedResources = false, true, []string{"x"} },
			[]func(journal.ObjectJournal){event},
			[]string{"The operator is not active: it is starting or exiting, or another replica is the leader. " +
				"No handlers are called."}},
		"paused": {"a paused operator has the remark on the pause alone",
			func(l *fixedState) { l.Paused, l.UnlistedResources = true, []string{"x"} },
			[]func(journal.ObjectJournal){event},
			[]string{"The operator is paused by a peer. It does not watch objects, and no handlers are called."}},
		"paused here": {"a pause in the namespace of the object is remarked",
			func(l *fixedState) { l.PausedNamespaces = []string{"a", "ns"} }, []func(journal.ObjectJournal){event},
			[]string{`The operator is paused by a peer in namespace "ns". No handlers are called ` +
				"for its objects."}},
		"paused elsewhere": {"a pause in another namespace is not remarked",
			func(l *fixedState) { l.PausedNamespaces = []string{"a"} }, []func(journal.ObjectJournal){event}, nil},
		"waiting": {"unfilled indices are remarked with their names",
			func(l *fixedState) { l.UnlistedResources = []string{"pods", "nodes"} },
			[]func(journal.ObjectJournal){event},
			[]string{"All handlers wait until the indices are filled. Not listed yet: pods, nodes."}},
		"unknown": {"an unknown object is remarked with the possible causes", nil, nil,
			[]string{unknown}},
		"idle, and unknown": {"inactivity and an unknown object are both remarked",
			func(l *fixedState) { l.Running = false }, nil,
			[]string{"The operator is not active: it is starting or exiting, or another replica is the leader. " +
				"No handlers are called.", unknown}},
		"elsewhere": {"a namespace that is not served is remarked with the served ones",
			func(l *fixedState) { l.Kinds[0].Namespaces = []string{"a", "b"} }, nil,
			[]string{`The operator does not serve namespace "ns"; it serves a, b.`}},
		"nowhere": {"an operator without namespaces has a remark on that",
			func(l *fixedState) { l.Kinds[0].Namespaces = []string{} }, nil,
			[]string{`The operator does not serve any namespace at the moment.`}},
		"here": {"an unknown object in a served namespace has the remark on the object",
			func(l *fixedState) { l.Kinds[0].Namespaces = []string{"a", "ns"} }, nil,
			[]string{unknown}},
		"served before": {"a known object in a namespace not served any more is not remarked",
			func(l *fixedState) { l.Kinds[0].Namespaces = []string{"a"} },
			[]func(journal.ObjectJournal){event}, nil},
		"noop": {"an evaluation without an essential change is remarked",
			nil, []func(journal.ObjectJournal){event, look(cause.Noop)}, []string{noop}},
		"noop at first": {"an evaluation without a change is not remarked after a later change", nil,
			[]func(journal.ObjectJournal){look(cause.Noop), look(cause.Create)}, nil},
		"noop, then others": {"events and background calls do not end the remark on an unchanged object", nil,
			[]func(journal.ObjectJournal){
				look(cause.Noop), event, background, refused, attempt(daemon), attempt(timer), attempt(onEvent),
				attempt(index), attempt(child),
			}, []string{noop}},
		"noop, then a call": {"a later call of a handler of changes ends the remark on an unchanged object", nil,
			[]func(journal.ObjectJournal){look(cause.Noop), attempt(create)}, nil},
		"free": {"a deletion that the operator does not block is remarked",
			nil, []func(journal.ObjectJournal){look(cause.Free)},
			[]string{"The object is being deleted, and this operator does not block that. Last evaluated " +
				"at 2000-01-01 00:00:00.000."}},
		"blocked": {"a blocked object is remarked with its error", nil,
			[]func(journal.ObjectJournal){look(cause.Noop), hold(journal.HeldBlocked, soon)},
			[]string{"The object is not handled until it changes: no quota."}},
		"throttled": {"a throttled object is remarked with the end of the delay",
			nil, []func(journal.ObjectJournal){hold(journal.HeldError, soon), event},
			[]string{"The object is throttled until 2000-01-01 01:00:00.000, " +
				"after an error of the framework: no quota."}},
		"waits for events": {"a hold without an end is remarked to last until the next event",
			nil, []func(journal.ObjectJournal){hold(journal.HeldError, noTime)},
			[]string{"The object is not handled until its next event, after an error of the framework: no quota."}},
		"held before": {"an evaluation after a hold ends the remark", nil,
			[]func(journal.ObjectJournal){hold(journal.HeldError, soon), look(cause.Update)}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newServingState()
				if c.stand != nil {
					c.stand(&l)
				}
				j := journal.New(journal.RetentionLimits{Objects: 7})
				j.SetLive(l)
				for _, happen := range c.happens {
					happen(widgetsOf(j).ForObject(w1, "u1"))
				}
				if d := cmp.Diff(c.want, explainObject(t, j, w1).Facts); d != "" {
					t.Errorf("%s; -want, +got:\n%s", c.reason, d)
				}
			})
		})
	}
}

// TestAnswers shows that each handler has one answer, based on its latest entries.
func TestAnswers(t *testing.T) {
	h := &handlers.Handler{ID: "h", Reason: cause.Create}
	look := func(of *handlers.Handler, why execution.SkipReason, dropped string) func(journal.ObjectJournal) {
		return func(o journal.ObjectJournal) {
			d := o.StartEvaluation(&cause.Cause{Reason: cause.Create})
			d.NoteDropped(dropped)
			if of != nil {
				d.AddVerdict(of, execution.Stop{Reason: why})
			}
			d.AddToJournal()
		}
	}
	call := func(of *handlers.Handler, o execution.Outcome) func(journal.ObjectJournal) {
		return func(to journal.ObjectJournal) { to.RecordAttempt(attemptOf(of, 0, o)) }
	}
	unnoticed := func(o journal.ObjectJournal) {
		d := o.StartEvaluation(&cause.Cause{Reason: cause.Create})
		d.NoteUnnoticed("The same state again")
		d.AddToJournal()
	}
	again, done := execution.Outcome{Err: errQuota, Delay: ptr(time.Minute)}, execution.Outcome{Final: true}
	timer := &handlers.Handler{ID: "h", Family: handlers.Background}
	const finished = "for a creation: it is finished with this change: it succeeded, or failed permanently."
	cases := map[string]struct {
		reason  string
		of      *handlers.Handler
		happens []func(journal.ObjectJournal)
		want    string
	}{
		"nothing": {"a handler without entries is not evaluated yet", h, nil, "Not evaluated yet."},
		"others": {"entries of other handlers, also of the same id for another cause, do not count",
			h, []func(journal.ObjectJournal){
				call(&handlers.Handler{ID: "i", Reason: cause.Create}, done),
				call(&handlers.Handler{ID: "h", Reason: cause.Delete}, done),
				look(&handlers.Handler{ID: "i", Reason: cause.Create}, execution.Finished, ""),
				look(&handlers.Handler{ID: "h", Reason: cause.Delete}, execution.Finished, ""),
			}, "Not evaluated yet."},
		"selected": {"a selected handler is about to be called", h, []func(journal.ObjectJournal){look(h, "", "")},
			"Selected at 0, for a creation: it is running, or is next."},
		"called": {"a call replaces the selection before it", h,
			[]func(journal.ObjectJournal){look(h, "", ""), call(h, done)},
			"Called at 1: attempt 1 succeeded."},
		"refused": {"a handler that was not called has the cause",
			h, []func(journal.ObjectJournal){look(h, execution.Finished, "")},
			"Not called at 0, " + finished},
		"called, then refused": {"a refusal after a call is described with both", h,
			[]func(journal.ObjectJournal){call(h, done), look(h, execution.Finished, "")},
			"Not called at 1, " + finished + " Called before, at 0: attempt 1 succeeded."},
		"refused, then called": {"a call replaces the refusal before it", h,
			[]func(journal.ObjectJournal){look(h, execution.Finished, ""), call(h, done)},
			"Called at 1: attempt 1 succeeded."},
		"called, then selected": {"a selection after a call keeps the description of the call", h,
			[]func(journal.ObjectJournal){call(h, again), look(h, "", "")},
			"Called at 0: attempt 1 failed; retrying: no quota; the next one is due at 60."},
		"refused, then of others": {"an evaluation without the handler keeps the refusal", h,
			[]func(journal.ObjectJournal){look(h, execution.Finished, ""), look(nil, "", "")},
			"Not called at 0, " + finished},
		"refused of a change": {"a refusal is described with the changed paths",
			h, []func(journal.ObjectJournal){func(o journal.ObjectJournal) {
				d := o.StartEvaluation(&cause.Cause{Reason: cause.Update, Diff: diffOf("a", "b")})
				d.AddVerdict(h, execution.Stop{Reason: execution.Blocked})
				d.AddToJournal()
			}}, "Not called at 0, for an update of spec.a, spec.b: " +
				"it cannot be called with the object, and waits until the object changes."},
		"dropped": {"dropped progress is described beside the last call", h,
			[]func(journal.ObjectJournal){call(h, again), look(nil, "", "superseded")},
			"Called at 0: attempt 1 failed; retrying: no quota; the next one is due at 60. " +
				"Its retries were dropped at 1: superseded."},
		"dropped, and refused": {"a refusal, the former call and dropped progress are all described", h,
			[]func(journal.ObjectJournal){call(h, again), look(h, execution.Finished, "superseded")},
			"Not called at 1, " + finished + " Called before, at 0: attempt 1 failed; retrying: no quota; " +
				"the next one is due at 60. Its retries were dropped at 1: superseded."},
		"dropped, and called": {"a call after dropped progress replaces it", h,
			[]func(journal.ObjectJournal){call(h, again), look(nil, "", "superseded"), call(h, done)},
			"Called at 2: attempt 1 succeeded."},
		"dropped before": {"dropped progress before the call is not described", h,
			[]func(journal.ObjectJournal){look(nil, "", "superseded"), call(h, again)},
			"Called at 1: attempt 1 failed; retrying: no quota; the next one is due at 60+1."},
		"finished, and dropped": {"dropped progress after a finished call is not described", h,
			[]func(journal.ObjectJournal){call(h, done), look(nil, "", "superseded")},
			"Called at 0: attempt 1 succeeded."},
		"unnoticed": {"a remark on an unnoticed change is added to the last call", h,
			[]func(journal.ObjectJournal){call(h, done), unnoticed},
			"Called at 0: attempt 1 succeeded. The same state again."},
		"unnoticed, and called": {"a call after the remark replaces it", h,
			[]func(journal.ObjectJournal){unnoticed, call(h, done)}, "Called at 1: attempt 1 succeeded."},
		"unnoticed, by a timer": {"a timer does not get the remark, as it does not depend on changes", timer,
			[]func(journal.ObjectJournal){call(timer, done), unnoticed}, "Called at 0: attempt 1 succeeded."},
		"timer": {"a timer does not get a remark on dropped progress",
			timer, []func(journal.ObjectJournal){call(timer, again), look(nil, "", "superseded")},
			"Called at 0: attempt 1 failed; retrying: no quota; the next one is due at 60."},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newServingJournal(journal.RetentionLimits{}, c.of)
				for _, happen := range c.happens {
					happen(widgetsOf(j).ForObject(w1, "u1"))
					time.Sleep(time.Second)
				}
				if got := inSeconds(explainObject(t, j, w1).Handlers[0].Text); got != c.want {
					t.Errorf("%s\nwant %s\n got %s", c.reason, c.want, got)
				}
			})
		})
	}
}

// inSeconds replaces virtual times by their seconds, and a minute by sixty.
func inSeconds(text string) string {
	for second := range 10 {
		text = strings.ReplaceAll(text, fmt.Sprintf("2000-01-01 00:00:%02d.000", second), fmt.Sprint(second))
		text = strings.ReplaceAll(text, fmt.Sprintf("2000-01-01 00:01:%02d.000", second), fmt.Sprintf("60+%d", second))
	}
	return strings.ReplaceAll(text, "60+0", "60")
}

// TestPartsOfAnswers shows that an answer has its parts as separate fields, with their times.
func TestPartsOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handlers.Handler{ID: "h", Reason: cause.Create}
		j := newServingJournal(journal.RetentionLimits{}, h, &handlers.Handler{ID: "i", Reason: cause.Create})
		o := widgetsOf(j).ForObject(w1, "u1")
		begin := time.Now()
		d := o.StartEvaluation(&cause.Cause{Reason: cause.Create})
		d.AddVerdict(h, execution.Stop{})
		d.AddToJournal()
		time.Sleep(time.Second + time.Nanosecond)
		o.RecordAttempt(attemptOf(h, 0, execution.Outcome{Final: true}))
		e := explainObject(t, j, w1)
		second := begin.UTC().Add(time.Second)
		want := []journal.Answer{{
			Handler: journal.RegisteredHandler{ID: "h", Purpose: "create"}, Text: "Called at 1: attempt 1 succeeded.",
			Verdict: &journal.HandlerVerdict{Handler: "h", Purpose: "create"}, DecidedAt: ptr(begin.UTC()),
			Attempt:  &journal.AttemptEntry{Handler: "h", Purpose: "create", Number: 1, Outcome: "succeeded"},
			CalledAt: &second,
		}, {
			Handler: journal.RegisteredHandler{ID: "i", Purpose: "create"},
			Text:    "Not evaluated yet.",
		}}
		for i := range e.Handlers {
			e.Handlers[i].Text = inSeconds(e.Handlers[i].Text)
		}
		if d := cmp.Diff(want, e.Handlers); d != "" {
			t.Errorf("-want, +got:\n%s", d)
		}
		if e.Operator != "test.example.org" || e.Kind != "Widget.example.org" || e.Namespace != "ns" ||
			e.Name != "w1" || e.UID != "u1" || !e.At.Equal(second) {
			t.Errorf("the explanation lacks the operator, the object or the time: %+v", e)
		}
	})
}
