package children

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conflict is one field that another field manager has set to something else.
type conflict struct{ field, manager string }

type conflicts []conflict

// conflictsOf is what an answer to a server-side apply tells; nil if it is about something else.
func conflictsOf(err error) (found conflicts) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) || known.Status().Details == nil {
		return nil
	}
	for _, cause := range known.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found = append(found, conflict{cause.Field, managerIn(cause.Message)})
		}
	}
	return found
}

// managerIn is the name in a message such as: conflict with "kubectl-edit" using v1.
func managerIn(message string) string {
	_, rest, _ := strings.Cut(message, `"`)
	name, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return message
	}
	return name
}

// declaredBy are the conflicts with managers that apply the object, too. Others have edited it.
func (c conflicts) declaredBy(managed []metav1.ManagedFieldsEntry) (rivals conflicts) {
	for _, one := range c {
		if slices.ContainsFunc(managed, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == one.manager && entry.Operation == metav1.ManagedFieldsOperationApply
		}) {
			rivals = append(rivals, one)
		}
	}
	return rivals
}

func (c conflicts) err() error {
	return fmt.Errorf("%s is declared by field manager %s as well, with another value: leave it to one of the two",
		strings.Join(c.fields(), ", "), quoted(c.managers()))
}

func (c conflicts) fields() (all []string) {
	for _, one := range c {
		all = append(all, one.field)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c conflicts) managers() (all []string) {
	for _, one := range c {
		all = append(all, one.manager)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func quoted(names []string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(names, ", ")
}
