package explorer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// exchange is a request of the operator under way.
type exchange struct {
	shown string // in a history; empty if it is not worth it
	place string // of a write
	lost  bool   // its answer
}

type (
	exchangeKey struct{}
	attemptKey  struct{}
)

// RoundTrip sends a request of this life. It is for the operator's client.
func (l *Life) RoundTrip(r *http.Request) (*http.Response, error) {
	<-l.started
	e := &exchange{}
	response, err := l.connection.RoundTrip(r.WithContext(context.WithValue(r.Context(), exchangeKey{}, e)))
	switch {
	case e.shown == "":
	case err != nil:
		l.world.note(l, fmt.Sprintf("%s: %v", e.shown, err))
	default:
		l.world.note(l, fmt.Sprintf("%s: %d", e.shown, response.StatusCode))
	}
	if by := l.world.run.course.late(); by > 0 && err == nil && r.URL.Query().Get("watch") != "" {
		response.Body = late(r.Context(), response.Body, by)
	}
	return response, err
}

// before is the moment when a request is sent.
func (l *Life) before(ctx context.Context, r memapi.Request) error {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	if e == nil || ofItself(r.Resource.Plural) {
		return nil
	}
	subject := subjectOf(r)
	if isRead(r) {
		if ctx.Value(attemptKey{}) == nil || l.world.isDead(l) { // an informer's, or the engine's
			return nil
		}
		e.shown = r.Verb + " " + subject
		_ = l.reach(point{place: "before-" + l.world.count("read", label(subject))}) // a dead life reads as well
		return nil
	}
	e.shown, e.place = shownAs(r, subject), l.world.count("write", label(subject))
	l.world.stir()
	here := write{e.place, conflicts(r)}
	if err := l.reach(point{"before-" + e.place, &here}); err != nil {
		return err
	}
	return l.disturb(e, r)
}

// after is the moment when a request has taken effect.
func (l *Life) after(ctx context.Context, r memapi.Request) error {
	e, _ := ctx.Value(exchangeKey{}).(*exchange)
	if e == nil || e.place == "" {
		return nil
	}
	l.world.written(r)
	if err := l.reach(point{place: "after-" + e.place}); err != nil {
		return err
	}
	if e.lost {
		return errLost
	}
	return nil
}

// disturb does to a write what the course says.
func (l *Life) disturb(e *exchange, r memapi.Request) error {
	resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Plural}
	switch l.world.troubleAt(l, e.place) {
	case conflict:
		if conflicts(r) {
			return apierrors.NewConflict(resource, r.Name, errPlanned)
		}
	case failure:
		return apierrors.NewInternalError(errPlanned)
	case lostAnswer:
		e.lost = true
	case foreign:
		l.world.interfere(r)
	}
	return nil
}

func isRead(r memapi.Request) bool { return slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// conflicts tells whether the server may refuse the request because of its version.
func conflicts(r memapi.Request) bool {
	return r.Verb == "update" || r.Verb == "patch" && r.ContentType != string(types.ApplyYAMLPatchType)
}

// ofItself is true for the resources by which an operator tells of itself, whatever happens to its objects.
func ofItself(plural string) bool {
	return slices.Contains([]string{
		"events", "leases", "kopfpeerings", "clusterkopfpeerings", "selfsubjectaccessreviews",
	}, plural)
}

// subjectOf is what a request is about, such as databases/orders.
func subjectOf(r memapi.Request) string {
	name := r.Name
	if name == "" && r.Verb == "create" {
		var sent struct {
			Metadata struct{ Name, GenerateName string }
		}
		if json.Unmarshal(r.Body, &sent) == nil {
			if name = sent.Metadata.Name; name == "" {
				name = sent.Metadata.GenerateName
			}
		}
	}
	parts := []string{r.Resource.Plural}
	if r.Namespace != "" && r.Namespace != "default" {
		parts = append(parts, r.Namespace)
	}
	if name != "" {
		parts = append(parts, name)
	}
	return strings.Join(parts, "/")
}

// shownAs is a write in a history.
func shownAs(r memapi.Request, subject string) string {
	verb := r.Verb
	if r.ContentType == string(types.ApplyYAMLPatchType) {
		verb = "apply"
	}
	if r.Subresource != "" {
		subject += "/" + r.Subresource
	}
	return verb + " " + subject
}

// label is a text as a part of the name of a course.
func label(text string) string {
	return strings.NewReplacer(" ", "-", ",", "-", "'", "-").Replace(text)
}
