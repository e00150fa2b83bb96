package memapi

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxBodyBytes is the maximum length of a body, as in the real server.
const maxBodyBytes = 3 << 20

const plainJSON = "application/json"

// negotiateRequest checks the headers and the length of a request. It returns true for partial if the client accepts
// only the metadata of objects, and an error for features that this server does not have.
func negotiateRequest(r *http.Request, body []byte) (partial bool, err error) {
	// Impersonation is refused, because the server does not have users.
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return false, unsupportedError("impersonation (%s)", name)
		}
	}
	if len(body) > maxBodyBytes {
		return false, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBodyBytes))
	}
	form := contentTypeOf(r)
	// Patches have content types of their own, which are checked later.
	if len(body) > 0 && form != "" && form != plainJSON && r.Method != http.MethodPatch {
		return false, unsupportedError("bodies in the form %s", form)
	}
	return negotiateAnswer(r)
}

// contentTypeOf returns the content type of the body, without parameters such as a charset.
func contentTypeOf(r *http.Request) string {
	form, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(form)
}

// negotiateAnswer picks the first format of the answer that this server supports. Clients list the formats in the order
// of their preference.
func negotiateAnswer(r *http.Request) (partial bool, err error) {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	if accepted == "" {
		return false, nil
	}
	for clause := range strings.SplitSeq(accepted, ",") {
		// An unknown format is skipped, because clients that prefer protobuf or tables also accept JSON.
		form, parameters, err := mime.ParseMediaType(clause)
		if err != nil || form != plainJSON && form != "application/*" && form != "*/*" {
			continue
		}
		switch as := parameters["as"]; {
		// Complete objects as JSON.
		case as == "":
			return false, nil
		// Metadata only.
		case strings.HasPrefix(as, "PartialObjectMetadata") && parameters["g"] == metaGroup && parameters["v"] == "v1":
			return true, nil
		}
	}
	return false, unsupportedError("answers in the form %s", accepted)
}

const metaGroup = "meta.k8s.io"

// formatAnswer returns an answer in the format that the client accepts. Status objects are never reduced to their
// metadata.
func (t target) formatAnswer(answer map[string]any) map[string]any {
	if !t.isMetadataOnly || answer["kind"] == "Status" && answer["apiVersion"] == "v1" {
		return answer
	}
	presented := map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": metaGroup + "/v1", "metadata": answer["metadata"],
	}
	if items, list := answer["items"].([]any); list {
		all := make([]any, 0, len(items))
		for _, item := range items {
			one, _ := item.(map[string]any)
			all = append(all, t.formatAnswer(one))
		}
		presented["kind"], presented["items"] = "PartialObjectMetadataList", all
	}
	return presented
}

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
	return newStatusError(http.StatusNotImplemented, "NotImplemented",
		"the API server in memory does not know "+fmt.Sprintf(format, arguments...))
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
	var err error
	switch verb {
	case "create":
		options := &metav1.CreateOptions{}
		err = metav1.Convert_url_Values_To_v1_CreateOptions(&query, options, nil)
		kind, problems = "CreateOptions", validation.ValidateCreateOptions(options)
	case "update":
		options := &metav1.UpdateOptions{}
		err = metav1.Convert_url_Values_To_v1_UpdateOptions(&query, options, nil)
		kind, problems = "UpdateOptions", validation.ValidateUpdateOptions(options)
	case "patch":
		options := &metav1.PatchOptions{}
		err = metav1.Convert_url_Values_To_v1_PatchOptions(&query, options, nil)
		kind, problems = "PatchOptions", validation.ValidatePatchOptions(options, types.PatchType(form))
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if len(problems) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
	}
	return nil
}
