package journal

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/handlers"
	"github.com/kopf-runtime/kopf-runtime/peering/sharding"
)

// LiveState provides the current state of the operator. Any goroutine may call it.
type LiveState interface{ OperatorState() OperatorState }

// OperatorState is the current state of an operator.
type OperatorState struct {
	// Operator is the name of the operator.
	Operator string `json:"operator"`
	// Running is false before the start, after the end, and while another replica leads.
	Running bool `json:"running"`
	// Paused is true while another operator acts in its place.
	Paused bool `json:"paused,omitempty"`
	// Standby is the reason of a pause that is not due to a peer, such as a Lease of another replica.
	Standby string `json:"standby,omitempty"`
	// PausedNamespaces are the namespaces where another operator acts in its place.
	PausedNamespaces []string `json:"pausedNamespaces,omitempty"`
	// UnlistedResources holds the indexed resources that are not listed yet. All handlers wait for them.
	UnlistedResources []string `json:"waiting,omitempty"`
	// Sharing is the state of the ranges of objects; nil if the replicas do not share the objects.
	Sharing *sharding.Status `json:"sharing,omitempty"`
	// Kinds holds the served kinds.
	Kinds []ServedKind `json:"kinds,omitempty"`
	// AbsentHandlers holds the handlers that wait because the cluster does not serve their kinds.
	AbsentHandlers []AbsentHandler `json:"absent,omitempty"`
}

// ServedKind is a kind that an operator serves.
type ServedKind struct {
	Kind     string `json:"kind"`
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool `json:"namespaced"`
	// Namespaces are the served namespaces; an empty name is the whole cluster.
	Namespaces []string `json:"namespaces"`
	// Handlers holds the handlers of the kind, in the order of registration.
	Handlers []RegisteredHandler `json:"handlers"`
	// Labels is the selector of watched objects, if all handlers require the same labels; empty means all objects.
	Labels string `json:"labels,omitempty"`
	// Background counts the daemons and timers of the kind by their state: running, waiting, stopping.
	Background map[string]int `json:"background,omitempty"`

	words []string // names by which users refer to the kind
}

// RegisteredHandler is a registered handler.
type RegisteredHandler struct {
	ID string `json:"id"`
	// Purpose is its purpose: create, update, delete, resume, field, event, daemon, timer, child.
	Purpose string `json:"on"`
	// Requirements describes the required properties of objects, in the words of the registration.
	Requirements []string `json:"demands,omitempty"`
	// Location is the file and line of the registration.
	Location string `json:"location,omitempty"`
}

// AbsentHandler is a handler whose kind the cluster does not serve.
type AbsentHandler struct {
	Handler string `json:"handler"`
	// Selector names the kind as it was registered.
	Selector string `json:"selector"`
}

// ServedKind returns the description of the kind and its handlers, for a Standing. The caller fills in the namespaces.
func (k *KindJournal) ServedKind(r discovery.Resource, own []*handlers.Handler) ServedKind {
	s := ServedKind{
		Kind: r.Kind, Group: r.Group, Version: r.Version, Resource: r.Plural, Namespaced: r.Namespaced,
		Namespaces: []string{}, Handlers: []RegisteredHandler{},
	}
	// The labels explain why an object outside of them has no entries.
	if shared := handlers.SharedLabels(own); shared != nil {
		s.Labels = shared.String()
	}
	// The same words that kubectl accepts.
	s.words = append(s.words, r.Kind, r.Plural, r.Singular)
	s.words = append(s.words, r.Shortcuts...)
	for _, h := range own {
		// Skip handlers that no event of an object calls, such as those of admission requests.
		if !h.FollowsEvents() {
			continue
		}
		s.Handlers = append(s.Handlers, RegisteredHandler{
			ID: h.ID, Purpose: h.VerbName(), Requirements: k.demandsOf(h), Location: h.Location,
		})
	}
	return s
}

// demandsOf describes the required properties of objects. Values required of secret fields are hidden, because they
// would reveal the secret.
func (k *KindJournal) demandsOf(h *handlers.Handler) (all []string) {
	if h.Field != nil {
		all = append(all, "field "+h.Field.String())
	}
	for _, one := range [][2]string{{"Value", h.FilterDescriptions.Value}, {"OldValue", h.FilterDescriptions.From},
		{"NewValue", h.FilterDescriptions.To}} {
		switch {
		case one[1] == "":
		case k.hidesPath(h.Field):
			// Even the required value could reveal a secret.
			all = append(all, one[0]+secretPlaceholder)
		default:
			all = append(all, one[0]+"("+shortenText(one[1])+")")
		}
	}
	for _, criterion := range h.FilterDescriptions.Filters {
		text := criterion.Text
		if criterion.Path != nil && k.hidesPath(criterion.Path) {
			text = criterion.Path.String() + " " + secretPlaceholder
		}
		all = append(all, text)
	}
	return all
}

// GroupKind returns the identity of the kind.
func (s ServedKind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: s.Group, Kind: s.Kind}
}

// String returns the kind with its group.
func (s ServedKind) String() string { return s.GroupKind().String() }

// isNamed reports whether the word names the kind: by kind, resource, singular or short name, optionally followed by
// its group or version and group, as in kubectl.
func (s ServedKind) isNamed(word string) bool {
	word = strings.ToLower(word)
	return slices.ContainsFunc(s.words, func(own string) bool {
		// Some kinds have no singular or short names: an empty word names nothing.
		own = strings.ToLower(own)
		return own != "" && (word == own || word == own+"."+s.Group || word == own+"."+s.Version+"."+s.Group)
	})
}

// findKind returns the kind that the word names. It returns a [*QuestionError] if there is none or more than one.
func (s OperatorState) findKind(word string) (ServedKind, error) {
	var found []ServedKind
	for _, one := range s.Kinds {
		if one.isNamed(word) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return ServedKind{}, &QuestionError{text: fmt.Sprintf(
			"operator %q does not serve kind %q: %s", s.Operator, word, s.describeAlternatives(),
		)}
	}
	// Ambiguous: list the kinds with their groups, so that the user can choose.
	names := make([]string, 0, len(found))
	for _, one := range found {
		names = append(names, one.String())
	}
	return ServedKind{}, &QuestionError{text: fmt.Sprintf(
		"%q is ambiguous: use one of %s", word, strings.Join(names, ", "),
	)}
}

// describeAlternatives describes the alternatives to an unknown kind.
func (s OperatorState) describeAlternatives() string {
	var parts []string
	if len(s.Kinds) > 0 {
		names := make([]string, 0, len(s.Kinds))
		for _, one := range s.Kinds {
			names = append(names, one.String())
		}
		parts = append(parts, "it serves "+strings.Join(names, ", "))
	}
	if len(s.AbsentHandlers) > 0 {
		var names []string
		for _, one := range s.AbsentHandlers {
			// Several handlers may wait for the same kind.
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

// QuestionError reports that a question does not identify one object: its kind is unknown or ambiguous, or its
// namespace is missing.
type QuestionError struct{ text string }

// Error returns the text, which lists the alternatives.
func (e *QuestionError) Error() string { return e.text }
