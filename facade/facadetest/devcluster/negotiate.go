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

// answerForm is the form that a client wants its answer in.
type answerForm struct {
	// media is the type of the answer.
	media string
	// table asks for the columns that kubectl prints; includeObject says how much of each object a row has.
	table         bool
	tableVersion  string
	includeObject string
	// accept is the form that the server in memory is asked for.
	accept string
}

// negotiate picks the first form that can be served; clients name the one that they like best first.
func negotiate(accepted []string, of memapi.Resource) (answerForm, error) {
	all := strings.Join(accepted, ",")
	if strings.TrimSpace(all) == "" {
		return answerForm{media: jsonForm, accept: jsonForm}, nil
	}
	for clause := range strings.SplitSeq(all, ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		if media == "*/*" || media == "application/*" {
			media = jsonForm
		}
		as := parameters["as"]
		switch {
		case media == jsonForm && as == "Table" && parameters["g"] == metav1.GroupName:
			return answerForm{media: media, accept: jsonForm, table: true, tableVersion: parameters["v"]}, nil
		case media == jsonForm && strings.HasPrefix(as, "PartialObjectMetadata"):
			return answerForm{media: media, accept: clause}, nil
		case as != "":
		case media == protobufForm && hasProtobuf(of):
			return answerForm{media: media, accept: jsonForm}, nil
		case media == jsonForm, media == yamlForm:
			return answerForm{media: media, accept: jsonForm}, nil
		}
	}
	return answerForm{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " +
			strings.Join([]string{jsonForm, yamlForm, protobufForm}, ", "),
	}}
}

// hasProtobuf is true for built-in kinds. A path without a known resource is answered by an error, which is JSON.
func hasProtobuf(r memapi.Resource) bool {
	return scheme.Recognizes(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
}

// definitionsResource is that of custom resource definitions.
var definitionsResource = memapi.Resource{
	Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition",
	Plural: "customresourcedefinitions", StatusSubresource: true,
}
