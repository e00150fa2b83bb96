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

// conflicts are the fields of one server-side apply that other managers own with different values.
type conflicts []conflict

// conflictsOf returns the field conflicts in the response to a server-side apply, or nil if the error has another
// cause.
func conflictsOf(err error) (found conflicts) {
	for _, cause := range causesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			found = append(found, conflict{cause.Field, managerFromMessage(cause.Message)})
		}
	}
	return found
}

// causesOf returns the causes in the response of the API server, if it lists any.
func causesOf(err error) []metav1.StatusCause {
	var known apierrors.APIStatus
	if !errors.As(err, &known) || known.Status().Details == nil {
		return nil
	}
	return known.Status().Details.Causes
}

// managerFromMessage extracts the manager's name from a message such as: conflict with "kubectl-edit" using v1. The API
// server has no separate field for it. The whole message is returned if it does not contain a quoted name.
func managerFromMessage(message string) string {
	_, rest, _ := strings.Cut(message, `"`)
	name, _, ok := strings.Cut(rest, `"`)
	if !ok {
		return message
	}
	return name
}

// fromAppliers returns the conflicts with managers that apply the object themselves. All other managers have only
// edited it.
func (c conflicts) fromAppliers(managed []metav1.ManagedFieldsEntry) (rivals conflicts) {
	for _, one := range c {
		// The operation distinguishes a manager that applies from one that only edits.
		if slices.ContainsFunc(managed, func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == one.manager && entry.Operation == metav1.ManagedFieldsOperationApply
		}) {
			rivals = append(rivals, one)
		}
	}
	return rivals
}

// asError names all conflicting fields and managers in one error, so that they can be fixed together.
func (c conflicts) asError() error {
	return fmt.Errorf("%s is declared by field manager %s as well, with another value: leave it to one of the two",
		strings.Join(c.fieldPaths(), ", "), joinQuoted(c.managerNames()))
}

// fieldPaths returns the distinct field paths in a stable order.
func (c conflicts) fieldPaths() []string {
	return c.distinct(func(one conflict) string { return one.field })
}

// managerNames returns the distinct field managers in a stable order.
func (c conflicts) managerNames() []string {
	return c.distinct(func(one conflict) string { return one.manager })
}

// distinct returns the distinct texts of the conflicts in a stable order.
func (c conflicts) distinct(text func(one conflict) string) (all []string) {
	for _, one := range c {
		all = append(all, text(one))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// joinQuoted joins the names in quotation marks. It overwrites the slice.
func joinQuoted(names []string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(names, ", ")
}
