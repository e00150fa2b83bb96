package journal

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/handlers"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/requirements"
)

// Live tells how the operator stands at the moment. It is asked by whoever asks the journal, and by any goroutine.
type Live interface{ Standing() Standing }

// Standing is how an operator stands at the moment.
type Standing struct {
	// Operator is its name.
	Operator string `json:"operator"`
	// Running is false before it has begun to work, and when it has ended, or as long as another replica leads.
	Running bool `json:"running"`
	// Paused is true while others act in its place.
	Paused bool `json:"paused,omitempty"`
	// PausedNamespaces are those where others act in its place.
	PausedNamespaces []string `json:"pausedNamespaces,omitempty"`
	// Waiting are the resources that are not listed yet, and that all handlers wait for, as there are indices of them.
	Waiting []string `json:"waiting,omitempty"`
	// Kinds are those that it serves.
	Kinds []Served `json:"kinds,omitempty"`
	// Absent are the handlers of kinds that the cluster does not serve, and that wait for these.
	Absent []Absent `json:"absent,omitempty"`
}

// Served is a kind that an operator serves.
type Served struct {
	Kind     string `json:"kind"`
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Namespaced is false for kinds of the whole cluster.
	Namespaced bool `json:"namespaced"`
	// Namespaces are those where it is served; an empty one is all.
	Namespaces []string `json:"namespaces"`
	// Handlers are those of the kind, in the order of registration.
	Handlers []Registered `json:"handlers"`
	// Labels is a selector of the objects that are watched, if all handlers demand these labels; empty is all objects.
	Labels string `json:"labels,omitempty"`
	// Background counts the daemons and timers of the kind by what they do: running, waiting, stopping.
	Background map[string]int `json:"background,omitempty"`

	words []string // that people call it by
}

// Registered is a handler.
type Registered struct {
	ID string `json:"id"`
	// On is what it is for: create, update, delete, resume, field, event, daemon, timer, child.
	On string `json:"on"`
	// Demands are what it demands of objects, in the words of the registration.
	Demands []string `json:"demands,omitempty"`
	// Location is the file and line of its registration.
	Location string `json:"location,omitempty"`
}

// Absent is a handler without a kind.
type Absent struct {
	Handler string `json:"handler"`
	// Selector is what it was registered for.
	Selector string `json:"selector"`
}

// Served is a kind with its handlers, for a Standing.
func (k *Kind) Served(r discovery.Resource, own []*handlers.Handler) Served {
	s := Served{
		Kind: r.Kind, Group: r.Group, Version: r.Version, Resource: r.Plural, Namespaced: r.Namespaced,
		Namespaces: []string{}, Handlers: []Registered{},
	}
	if shared := requirements.Shared(own, (*handlers.Handler).Watched); shared != nil {
		s.Labels = shared.String()
	}
	s.words = append(s.words, r.Kind, r.Plural, r.Singular)
	s.words = append(s.words, r.Shortcuts...)
	for _, h := range own {
		if !h.Follows() {
			continue
		}
		s.Handlers = append(s.Handlers, Registered{
			ID: h.ID, On: h.On(), Demands: k.demands(h), Location: h.Location,
		})
	}
	return s
}

// demands are what a handler demands. What it demands of a secret is as secret.
func (k *Kind) demands(h *handlers.Handler) (all []string) {
	if h.Field != nil {
		all = append(all, "field "+h.Field.String())
	}
	for _, one := range [][2]string{{"Value", h.Words.Value}, {"OldValue", h.Words.From}, {"NewValue", h.Words.To}} {
		switch {
		case one[1] == "":
		case k.hides(h.Field):
			all = append(all, one[0]+notShown)
		default:
			all = append(all, one[0]+"("+shortened(one[1])+")")
		}
	}
	for _, criterion := range h.Words.Filters {
		text := criterion.Text
		if criterion.Path != nil && k.hides(criterion.Path) {
			text = criterion.Path.String() + " " + notShown
		}
		all = append(all, text)
	}
	return all
}

// GroupKind is what its objects are known by.
func (s Served) GroupKind() schema.GroupKind { return schema.GroupKind{Group: s.Group, Kind: s.Kind} }

// String is the kind with its group.
func (s Served) String() string { return s.GroupKind().String() }

// is tells whether people call the kind so: by its kind, its names, be they followed by its group or not.
func (s Served) is(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(s.words, func(own string) bool {
		own = strings.ToLower(own)
		return own != "" && (word == own || word == own+"."+s.Group || word == own+"."+s.Version+"."+s.Group)
	})
}

// find gives the kind that is called so. It is an error if there is none, or several.
func (s Standing) find(word string) (Served, error) {
	var found []Served
	for _, one := range s.Kinds {
		if one.is(word) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Served{}, &QuestionError{text: fmt.Sprintf(
			"operator %q does not serve kind %q: %s", s.Operator, word, s.choice(),
		)}
	}
	names := make([]string, 0, len(found))
	for _, one := range found {
		names = append(names, one.String())
	}
	return Served{}, &QuestionError{text: fmt.Sprintf(
		"%q is ambiguous: use one of %s", word, strings.Join(names, ", "),
	)}
}

// choice says what there is instead.
func (s Standing) choice() string {
	var parts []string
	if len(s.Kinds) > 0 {
		names := make([]string, 0, len(s.Kinds))
		for _, one := range s.Kinds {
			names = append(names, one.String())
		}
		parts = append(parts, "it serves "+strings.Join(names, ", "))
	}
	if len(s.Absent) > 0 {
		var names []string
		for _, one := range s.Absent {
			if !slices.Contains(names, one.Selector) {
				names = append(names, one.Selector)
			}
		}
		parts = append(parts, "its handlers wait until the cluster serves "+strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return "it does not serve any kind at the moment"
	}
	return strings.Join(parts, "; ")
}

// QuestionError says that a question is not about one object: no kind, or more than one, is called so, or there is no
// namespace.
type QuestionError struct{ text string }

// Error says what there is to be asked about.
func (e *QuestionError) Error() string { return e.text }
