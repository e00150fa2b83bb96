package inspection

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
)

const (
	// refreshInterval is the least time between two refreshes of the summaries. All open pages share them.
	refreshInterval = 500 * time.Millisecond
	// maxSentenceLength limits the characters of a decision that are shown.
	maxSentenceLength = 200
)

// ObjectSummary is the summary of one object.
type ObjectSummary struct {
	// Kind includes the group, as the journal accepts it: Widget.example.org.
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	State     ObjectCondition `json:"state"`
	// Until is the time when the operator acts on its own: at the next attempt, or at the end of throttling.
	Until *time.Time `json:"until,omitempty"`
	// Text explains the state: the call or the error that caused it, or the last decision about a change. Calls for raw
	// events and in the background only count if there is nothing else, or if they failed.
	Text string `json:"says"`
	// Since is the beginning of the state; for an object without a problem, the time of the decision.
	Since time.Time `json:"since"`
}

// Retry is a handler that failed and will be called again.
type Retry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Handler   string `json:"handler"`
	Purpose   string `json:"on,omitempty"`
	// Attempt is the number of calls so far, and Error the text of the last error.
	Attempt int    `json:"attempt"`
	Error   string `json:"error,omitempty"`
	// Until is the time of the next call; nil means at once.
	Until *time.Time `json:"until,omitempty"`
}

// Query selects objects. Empty fields select all.
type Query struct {
	Kind  string
	State ObjectCondition
	// Text must occur in the namespace/name, the kind or the decision. Case does not matter.
	Text string
	// Limit limits the number of objects and of retries in the result.
	Limit int
}

// View is the answer to a Query. Its counts include all objects, not only the selected ones.
type View struct {
	Total  int                     `json:"known"`
	Kinds  map[string]int          `json:"kinds"`
	States map[ObjectCondition]int `json:"states"`
	// MatchCount is the number of selected objects, and Objects holds the first of them: those with problems first,
	// ordered by severity and then by duration; then the others, the last decision first.
	MatchCount int             `json:"matching"`
	Objects    []ObjectSummary `json:"objects"`
	// RetryCount is the number of waiting retries of all objects, and Retries holds those that are due first.
	RetryCount int     `json:"retrying"`
	Retries    []Retry `json:"retries"`
}

// Overview keeps the summaries of all objects. Any goroutine may use it.
type Overview struct {
	journal *journal.Journal

	mu              sync.Mutex
	lastEntryNumber uint64 // number of the journal's last entry at the last refresh
	// refreshedAt is the time of the last refresh.
	refreshedAt time.Time
	objects     map[journal.Key]*summary
	// The results of the last refresh. They are shared with views, so each refresh replaces them.
	sorted  []*summary
	retries []Retry
	kinds   map[string]int
	states  map[ObjectCondition]int
}

// NewOverview creates the overview of a journal. It reads the journal at the first query.
func NewOverview(of *journal.Journal) *Overview {
	return &Overview{journal: of, objects: map[journal.Key]*summary{}}
}

// QueryView answers a query, with summaries that are at most half a second old.
func (o *Overview) QueryView(q Query) View {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The lock is held during the refresh, so several pages never refresh at the same time.
	o.refreshSummaries()
	v := View{
		Total: len(o.sorted), Kinds: o.kinds, States: o.states, Objects: []ObjectSummary{}, RetryCount: len(o.retries),
		Retries: o.retries[:min(len(o.retries), q.Limit)],
	}
	q.Text = strings.ToLower(q.Text)
	for _, s := range o.sorted {
		if !q.selectsObject(s) {
			continue
		}
		// Count all matching objects, but return only the first.
		if v.MatchCount++; v.MatchCount <= q.Limit {
			v.Objects = append(v.Objects, s.object)
		}
	}
	return v
}

// selectsObject reports whether the query selects the object.
func (q Query) selectsObject(s *summary) bool {
	return (q.Kind == "" || q.Kind == s.object.Kind) && (q.State == "" || q.State == s.object.State) &&
		(q.Text == "" || strings.Contains(s.text, q.Text))
}

// refreshSummaries summarizes the objects with new entries again. It creates new maps and lists, because earlier views
// may still be in use.
func (o *Overview) refreshSummaries() {
	if !o.refreshedAt.IsZero() && (time.Since(o.refreshedAt) < refreshInterval ||
		o.journal.VisitObjects(nil) == o.lastEntryNumber) {
		return
	}
	o.refreshedAt = time.Now()
	var all, changed []*summary
	objects := make(map[journal.Key]*summary, len(o.objects))
	// The journal is locked during the visit, and every handler that records something waits for it. So the entries are
	// read later.
	o.lastEntryNumber = o.journal.VisitObjects(func(of journal.Key, number uint64) {
		s := o.objects[of]
		if s == nil || s.number != number {
			s = &summary{key: of, number: number}
			changed = append(changed, s)
		}
		objects[of], all = s, append(all, s)
	})
	changing := o.changingKinds()
	for _, s := range changed {
		entries, _, gone, listed := o.journal.EntriesOf(s.key)
		s.sumUp(entries, gone, listed && changing(s.key.Kind))
		// Compare with the former summary of the object, if there was one.
		s.keepSince(o.objects[s.key])
	}
	// Removed objects are not in the new maps, so nothing has to be deleted.
	slices.SortFunc(all, (*summary).compareSeverity)
	o.objects, o.sorted = objects, all
	o.countStates()
}

// changingKinds returns a function that reports whether a kind has change handlers. A kind that is not served any more
// counts as one that has.
func (o *Overview) changingKinds() func(schema.GroupKind) bool {
	without := map[schema.GroupKind]bool{}
	for _, kind := range o.journal.OperatorState().Kinds {
		without[kind.GroupKind()] = !slices.ContainsFunc(kind.Handlers, func(h journal.RegisteredHandler) bool {
			return journal.IsForChanges(h.Purpose)
		})
	}
	return func(kind schema.GroupKind) bool { return !without[kind] }
}

// countStates counts objects by kind and by state, and collects the retries in the order in which they are due.
func (o *Overview) countStates() {
	o.kinds, o.states, o.retries = map[string]int{}, map[ObjectCondition]int{}, []Retry{}
	for _, s := range o.sorted {
		o.kinds[s.object.Kind]++
		o.states[s.object.State]++
		o.retries = append(o.retries, s.retries...)
	}
	slices.SortStableFunc(o.retries, func(a, b Retry) int {
		// A retry without a time is due at once, so it comes first, like the zero time.
		return ptr.Deref(a.Until, time.Time{}).Compare(ptr.Deref(b.Until, time.Time{}))
	})
}

// summary is the state of one object at its last entry. It is not modified after the refresh that created it.
type summary struct {
	key          journal.Key
	number       uint64 // number of the last entry that it includes
	object       ObjectSummary
	text         string // text to search in, in lower case
	retries      []Retry
	isContinuing bool // the state began in the past and continues, see [explainedState]
}

// sumUp computes the summary from the entries. The last argument is true if the object existed before this process.
func (s *summary) sumUp(entries []journal.Entry, gone, before bool) {
	c := stateTracker{gone: gone, existedBefore: before}
	for i := range entries {
		c.addEntry(&entries[i])
	}
	now := c.currentState()
	s.isContinuing = now.isContinuing
	s.object = ObjectSummary{
		Kind: s.key.Kind.String(), Namespace: s.key.Object.Namespace, Name: s.key.Object.Name, State: now.state,
		Until: now.until, Since: now.since,
	}
	// Only the entry that explains the state is shown, not the whole history.
	if now.entry != nil {
		s.object.Text = shortSentence(now.entry.String())
	}
	s.text = strings.ToLower(s.object.Kind + " " + s.object.Namespace + "/" + s.object.Name + " " + s.object.Text)
	for _, h := range c.retryingHandlers() {
		s.retries = append(s.retries, Retry{
			Kind: s.object.Kind, Namespace: s.object.Namespace, Name: s.object.Name, Handler: h.id, Purpose: h.purpose,
			Attempt: h.attempt.Number, Error: shortSentence(h.attempt.Error), Until: h.until,
		})
	}
}

// keepSince keeps the beginning of a continuing state, because the journal may have dropped the entry of the beginning.
func (s *summary) keepSince(former *summary) {
	if former != nil && s.isContinuing && former.isContinuing && s.object.State == former.object.State &&
		former.object.Since.Before(s.object.Since) {
		s.object.Since = former.object.Since
	}
}

// compareSeverity orders the most severe problems first, then by duration, so that a new problem moves no row above it.
// Objects without a problem are ordered by their last decision, the newest first.
func (s *summary) compareSeverity(other *summary) int {
	a, b := &s.object, &other.object
	since := a.Since.Compare(b.Since)
	if !a.State.IsProblem() {
		since = -since
	}
	return cmp.Or(
		cmp.Compare(a.State.severityRank(), b.State.severityRank()), since, cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind),
	)
}

// shortSentence returns the first characters of a long text.
func shortSentence(text string) string {
	count := 0
	for at := range text {
		if count == maxSentenceLength {
			return text[:at] + "…"
		}
		count++
	}
	return text
}
