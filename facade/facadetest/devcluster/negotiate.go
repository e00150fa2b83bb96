package devcluster

import (
	"mime"
	"net/http"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

const (
	jsonForm     = "application/json"
	protobufForm = "application/vnd.kubernetes.protobuf"
	yamlForm     = "application/yaml"
)

// answerForm is the format in which a client expects its answer.
type answerForm struct {
	// media is the content type of the answer.
	media string
	// table requests the columns that kubectl prints. includeObject defines how much of each object a row contains.
	table         bool
	tableVersion  string
	includeObject string
	// accept is the Accept header for the request to the server in memory.
	accept string
}

// negotiateForm returns the first supported format. Clients list formats in the order of their preference.
func negotiateForm(accepted []string, of memapi.Resource) (answerForm, error) {
	all := strings.Join(accepted, ",")
	// Without an Accept header, the answer is JSON, as from the real server.
	if strings.TrimSpace(all) == "" {
		return answerForm{media: jsonForm, accept: jsonForm}, nil
	}
	for clause := range strings.SplitSeq(all, ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		// A wildcard means the preferred format of the server.
		if media == "*/*" || media == "application/*" {
			media = jsonForm
		}
		as := parameters["as"]
		switch {
		case media == jsonForm && as == "Table" && parameters["g"] == metav1.GroupName:
			return answerForm{media: media, accept: jsonForm, table: true, tableVersion: parameters["v"]}, nil
		// The server in memory produces partial metadata itself, so the clause is passed on.
		case media == jsonForm && strings.HasPrefix(as, "PartialObjectMetadata"):
			return answerForm{media: media, accept: clause}, nil
		// Any other transformation is not supported, so the next format is tried.
		case as != "":
		case media == protobufForm && hasProtobuf(of):
			return answerForm{media: media, accept: jsonForm}, nil
		case media == jsonForm, media == yamlForm:
			return answerForm{media: media, accept: jsonForm}, nil
		}
	}
	// No format is supported: the real server answers with 406 and the list of its formats.
	return answerForm{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " +
			strings.Join([]string{jsonForm, yamlForm, protobufForm}, ", "),
	}}
}

// hasProtobuf reports whether the kind is a built-in one with a Go type. Custom resources do not have a protobuf
// encoding.
func hasProtobuf(r memapi.Resource) bool {
	return scheme.Recognizes(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
}

// definitionsResource is the resource of custom resource definitions.
var definitionsResource = memapi.Resource{
	Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition",
	Plural: "customresourcedefinitions", StatusSubresource: true,
}
