package console

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

const (
	// pace is how long what was summed up is good enough, whatever has happened since.
	pace = 500 * time.Millisecond
	// longestSentence is how many characters of a decision are shown.
	longestSentence = 200
)

// Object is one that the operator knows.
type Object struct {
	// Kind is with its group, as the journal takes it: Widget.example.org.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	// Until is when something is done for it by itself: the next attempt, or the end of a throttling.
	Until *time.Time `json:"until,omitempty"`
	// Says is why it is in the state: the call or the error that it comes from, or the last decision about a change.
	// Calls for raw events and in the background are there only if nothing else is, or if they have failed.
	Says string `json:"says"`
	// Since is when the state began; without a problem, when the decision was made.
	Since time.Time `json:"since"`
}

// Retry is a handler that has failed and is called again.
type Retry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Handler   string `json:"handler"`
	On        string `json:"on,omitempty"`
	// Attempt counts the calls so far; Error is the text of the last error.
	Attempt int    `json:"attempt"`
	Error   string `json:"error,omitempty"`
	// Until is when it is called again; nil is at once.
	Until *time.Time `json:"until,omitempty"`
}

// Query says which objects are wanted. What is empty does not matter.
type Query struct {
	Kind  string
	State State
	// Text is in the namespace/name, in the kind or in the decision, in whatever case.
	Text string
	// Most is how many objects, and how many retries, are given.
	Most int
}

// View is what there is. Counts are of all objects, whatever is asked for.
type View struct {
	Known  int            `json:"known"`
	Kinds  map[string]int `json:"kinds"`
	States map[State]int  `json:"states"`
	// Matching is how many are as asked for; Objects are the first of these: the most severe problem first, then those
	// that have lasted longest; then those without a problem, the last decision first.
	Matching int      `json:"matching"`
	Objects  []Object `json:"objects"`
	// Retrying is how many retries wait in all; Retries are the first that are due.
	Retrying int     `json:"retrying"`
	Retries  []Retry `json:"retries"`
}

// Overview keeps what was summed up. It may be used by any goroutine.
type Overview struct {
	journal *journal.Journal

	mu      sync.Mutex
	seen    uint64 // how far the journal was when it was summed up
	looked  time.Time
	objects map[journal.Key]*summary
	sorted  []*summary
	retries []Retry
	kinds   map[string]int
	states  map[State]int
}

// NewOverview makes the overview of a journal.
func NewOverview(of *journal.Journal) *Overview {
	return &Overview{journal: of, objects: map[journal.Key]*summary{}}
}

// Look gives what is asked for, as it was half a second ago at most.
func (o *Overview) Look(q Query) View {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
	v := View{
		Known: len(o.sorted), Kinds: o.kinds, States: o.states, Objects: []Object{}, Retrying: len(o.retries),
		Retries: o.retries[:min(len(o.retries), q.Most)],
	}
	q.Text = strings.ToLower(q.Text)
	for _, s := range o.sorted {
		if !q.wants(s) {
			continue
		}
		if v.Matching++; v.Matching <= q.Most {
			v.Objects = append(v.Objects, s.object)
		}
	}
	return v
}

func (q Query) wants(s *summary) bool {
	return (q.Kind == "" || q.Kind == s.object.Kind) && (q.State == "" || q.State == s.object.State) &&
		(q.Text == "" || strings.Contains(s.text, q.Text))
}

// refresh looks again at the objects that have new entries. What it gave before is never changed.
func (o *Overview) refresh() {
	if !o.looked.IsZero() && (time.Since(o.looked) < pace || o.journal.Each(nil) == o.seen) {
		return
	}
	o.looked = time.Now()
	var all, changed []*summary
	objects := make(map[journal.Key]*summary, len(o.objects))
	// The journal waits meanwhile, and with it all handlers: the entries are read after this.
	o.seen = o.journal.Each(func(of journal.Key, number uint64) {
		s := o.objects[of]
		if s == nil || s.number != number {
			s = &summary{of: of, number: number}
			changed = append(changed, s)
		}
		objects[of], all = s, append(all, s)
	})
	changing := o.changing()
	for _, s := range changed {
		entries, gone, listed := o.journal.Entries(s.of)
		s.sumUp(entries, gone, listed && changing(s.of.Kind))
		s.keepSince(o.objects[s.of])
	}
	slices.SortFunc(all, (*summary).compare)
	o.objects, o.sorted = objects, all
	o.count()
}

// changing returns a function that reports whether a kind has change handlers, as far as that is known.
func (o *Overview) changing() func(schema.GroupKind) bool {
	without := map[schema.GroupKind]bool{}
	for _, kind := range o.journal.Standing().Kinds {
		without[kind.GroupKind()] = !slices.ContainsFunc(kind.Handlers, func(h journal.Registered) bool {
			return (&handler{on: h.On}).ofChanges()
		})
	}
	return func(kind schema.GroupKind) bool { return !without[kind] }
}

// count counts all, and collects the retries.
func (o *Overview) count() {
	o.kinds, o.states, o.retries = map[string]int{}, map[State]int{}, []Retry{}
	for _, s := range o.sorted {
		o.kinds[s.object.Kind]++
		o.states[s.object.State]++
		o.retries = append(o.retries, s.retries...)
	}
	slices.SortStableFunc(o.retries, func(a, b Retry) int {
		switch {
		case a.Until == nil && b.Until == nil:
			return 0
		case a.Until == nil:
			return -1
		case b.Until == nil:
			return 1
		}
		return a.Until.Compare(*b.Until)
	})
}

// summary is what is known of one object.
type summary struct {
	of      journal.Key
	number  uint64 // of the last entry that is in it
	object  Object
	text    string // to search in
	retries []Retry
	lasts   bool // the state goes on since its beginning
}

// sumUp makes it of the entries. The object was there before this process, or not.
func (s *summary) sumUp(entries []journal.Entry, gone, before bool) {
	c := course{gone: gone, before: before}
	for i := range entries {
		c.take(&entries[i])
	}
	now := c.standing()
	s.lasts = now.lasts
	s.object = Object{
		Kind: s.of.Kind.String(), Namespace: s.of.Object.Namespace, Name: s.of.Object.Name, State: now.state,
		Until: now.until, Since: now.since,
	}
	if now.by != nil {
		s.object.Says = short(now.by.String())
	}
	s.text = strings.ToLower(s.object.Kind + " " + s.object.Namespace + "/" + s.object.Name + " " + s.object.Says)
	for _, h := range c.retries() {
		s.retries = append(s.retries, Retry{
			Kind: s.object.Kind, Namespace: s.object.Namespace, Name: s.object.Name, Handler: h.id, On: h.on,
			Attempt: h.attempt.Number, Error: short(h.attempt.Error), Until: h.until,
		})
	}
}

// keepSince keeps the time at which a state began that goes on: the journal may have forgotten the beginning.
func (s *summary) keepSince(former *summary) {
	if former != nil && s.lasts && former.lasts && s.object.State == former.object.State &&
		former.object.Since.Before(s.object.Since) {
		s.object.Since = former.object.Since
	}
}

// compare sorts the most severe problem first, then the longest one, so that a new problem moves no row above it.
// Without problems, the newest object comes first.
func (s *summary) compare(other *summary) int {
	a, b := &s.object, &other.object
	since := a.Since.Compare(b.Since)
	if !a.State.Problem() {
		since = -since
	}
	return cmp.Or(
		cmp.Compare(a.State.severity(), b.State.severity()), since, cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind),
	)
}

// short is the beginning of a long text.
func short(text string) string {
	count := 0
	for at := range text {
		if count == longestSentence {
			return text[:at] + "…"
		}
		count++
	}
	return text
}
