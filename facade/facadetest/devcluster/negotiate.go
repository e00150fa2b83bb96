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
	jsonContentType     = "application/json"
	protobufContentType = "application/vnd.kubernetes.protobuf"
	yamlContentType     = "application/yaml"
)

// responseFormat is the format in which a client expects its answer.
type responseFormat struct {
	// contentType is the content type of the answer.
	contentType string
	// isTable requests the columns that kubectl prints. includeObject defines how much of each object a row contains.
	isTable       bool
	tableVersion  string
	includeObject string
	// accept is the Accept header for the request to the server in memory.
	accept string
}

// negotiateFormat returns the first supported format. Clients list formats in the order of their preference.
func negotiateFormat(accepted []string, of memapi.Resource) (responseFormat, error) {
	all := strings.Join(accepted, ",")
	// Without an Accept header, the answer is JSON, as from the real server.
	if strings.TrimSpace(all) == "" {
		return responseFormat{contentType: jsonContentType, accept: jsonContentType}, nil
	}
	for clause := range strings.SplitSeq(all, ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		// A wildcard means the preferred format of the server.
		if media == "*/*" || media == "application/*" {
			media = jsonContentType
		}
		as := parameters["as"]
		switch {
		case media == jsonContentType && as == "Table" && parameters["g"] == metav1.GroupName:
			return responseFormat{contentType: media, accept: jsonContentType, isTable: true,
				tableVersion: parameters["v"]}, nil
		// The server in memory produces partial metadata itself, so the clause is passed on.
		case media == jsonContentType && strings.HasPrefix(as, "PartialObjectMetadata"):
			return responseFormat{contentType: media, accept: clause}, nil
		// Any other transformation is not supported, so the next format is tried.
		case as != "":
		case media == protobufContentType && hasProtobuf(of):
			return responseFormat{contentType: media, accept: jsonContentType}, nil
		case media == jsonContentType, media == yamlContentType:
			return responseFormat{contentType: media, accept: jsonContentType}, nil
		}
	}
	// No format is supported: the real server answers with 406 and the list of its formats.
	return responseFormat{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " +
			strings.Join([]string{jsonContentType, yamlContentType, protobufContentType}, ", "),
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
