package memapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// parameters are those of the query that are known, by verb. The real server overlooks others; here they may be what a
// client relies on.
var parameters = func() map[string][]string {
	writing := []string{"dryRun", "fieldManager", "fieldValidation"}
	reading := []string{
		"watch", "allowWatchBookmarks", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
		"timeoutSeconds", "labelSelector", "fieldSelector", "limit", "continue",
	}
	deleting := []string{
		"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy",
	}
	collection := []string{"labelSelector", "fieldSelector"}
	return map[string][]string{
		"get": {"resourceVersion"}, "list": reading, "watch": reading,
		"create": writing, "update": writing, "patch": append([]string{"force"}, writing...),
		"delete": deleting, "deletecollection": append(collection, deleting...),
	}
}()

// Supports reports whether requests of the verb may have the parameter. The real server ignores others; requests that
// are sent to a [Server] with others get the status 501.
func Supports(verb, parameter string) bool {
	return parameter == "pretty" || parameter == "timeout" || slices.Contains(parameters[verb], parameter)
}

// unsupported is what a client gets that asks for what the real server can do, and this one cannot.
func unsupported(format string, arguments ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: "the API server in memory does not know " + fmt.Sprintf(format, arguments...),
	}}
}

// options reads what a request says beside its body.
func (t *target) options(r *http.Request) error {
	query := r.URL.Query()
	what := verb(r, t.name)
	for name := range query {
		if !Supports(what, name) {
			return unsupported("the parameter %s of a %s", name, what)
		}
	}
	t.manager, t.validation = managerOf(r), query.Get("fieldValidation")
	t.dry = slices.Contains(query["dryRun"], metav1.DryRunAll)
	return invalidOptions(what, query, formOf(r))
}

// invalidOptions judges options as the real server does.
func invalidOptions(verb string, query url.Values, form string) error {
	var kind string
	var problems field.ErrorList
	dry, manager, strictness := query["dryRun"], query.Get("fieldManager"), query.Get("fieldValidation")
	switch verb {
	case "create":
		kind = "CreateOptions"
		problems = validation.ValidateCreateOptions(&metav1.CreateOptions{
			DryRun: dry, FieldManager: manager, FieldValidation: strictness,
		})
	case "update":
		kind = "UpdateOptions"
		problems = validation.ValidateUpdateOptions(&metav1.UpdateOptions{
			DryRun: dry, FieldManager: manager, FieldValidation: strictness,
		})
	case "patch":
		kind = "PatchOptions"
		options := &metav1.PatchOptions{DryRun: dry, FieldManager: manager, FieldValidation: strictness}
		if query.Has("force") {
			force := query.Get("force") != "false"
			options.Force = &force
		}
		problems = validation.ValidatePatchOptions(options, types.PatchType(form))
	}
	if len(problems) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
	}
	return nil
}
