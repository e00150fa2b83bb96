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

// parameters lists the supported query parameters by verb. The real server ignores other ones. This server refuses
// them, because a client may depend on a parameter that only the real server supports.
var parameters = func() map[string][]string {
	writing := []string{"dryRun", "fieldManager", "fieldValidation"}
	reading := []string{
		"watch", "allowWatchBookmarks", "resourceVersion", "resourceVersionMatch", "sendInitialEvents",
		"timeoutSeconds", "labelSelector", "fieldSelector", "shardSelector", "limit", "continue",
	}
	deleting := []string{
		"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy",
	}
	collection := []string{"labelSelector", "fieldSelector", "shardSelector"}
	return map[string][]string{
		"get": {"resourceVersion"}, "list": reading, "watch": reading,
		"create": writing, "update": writing, "patch": append([]string{"force"}, writing...),
		"delete": deleting, "deletecollection": append(collection, deleting...),
	}
}()

// Supports reports whether a [Server] supports the query parameter for requests of the verb. Requests with any other
// parameter get the status 501, although the real server ignores parameters that do not apply.
func Supports(verb, parameter string) bool {
	return parameter == "pretty" || parameter == "timeout" || slices.Contains(parameters[verb], parameter)
}

// unsupportedError returns the error for a feature that only the real server has, with the status 501.
func unsupportedError(format string, arguments ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: "NotImplemented",
		Message: "the API server in memory does not know " + fmt.Sprintf(format, arguments...),
	}}
}

// readOptions reads the query parameters of a request into the target, and checks them.
func (t *target) readOptions(r *http.Request) error {
	query := r.URL.Query()
	what := requestVerb(r, t.name)
	// A client may depend on an unsupported parameter, so it is an error.
	for name := range query {
		if !Supports(what, name) {
			return unsupportedError("the parameter %s of a %s", name, what)
		}
	}
	t.manager, t.fieldValidation = managerOf(r), query.Get("fieldValidation")
	t.isDryRun = slices.Contains(query["dryRun"], metav1.DryRunAll)
	return invalidOptions(what, query, contentTypeOf(r))
}

// invalidOptions validates the options of a write with the functions of the real server.
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
