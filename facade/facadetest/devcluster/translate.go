package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// scheme contains the Go types of all built-in kinds.
var scheme = func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	return all
}()

// Encoders and decoders. Watch events use the raw format, without a prefix.
var (
	codecs                = serializer.NewCodecFactory(scheme)
	protobufSerializer    = protobuf.NewSerializer(scheme, scheme)
	rawProtobufSerializer = protobuf.NewRawSerializer(scheme, scheme)
	statusKinds           = map[string]bool{"Status": true}
)

// toJSON converts the body of a request to JSON.
func toJSON(form string, data []byte) ([]byte, error) {
	switch form {
	case protobufContentType:
		if len(data) == 0 {
			return data, nil
		}
		// The kind of the object is in the encoded form, so no expected type is needed.
		object, kind, err := codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		// Protobuf has the kind in its envelope, not in the object.
		object.GetObjectKind().SetGroupVersionKind(*kind)
		return json.Marshal(object)
	case yamlContentType:
		data, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return data, nil
	default:
		return data, nil
	}
}

// fromJSON converts a document of the server in memory to the format of the answer.
func (f responseFormat) fromJSON(data []byte) ([]byte, error) {
	switch f.contentType {
	case protobufContentType:
		// The object is decoded into its Go type, which has the protobuf encoding.
		object, _, err := codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = protobufSerializer.Encode(object, &out)
		return out.Bytes(), err
	case yamlContentType:
		return yaml.JSONToYAML(data)
	default:
		return data, nil
	}
}

// writeAnswer writes an object that does not come from the server in memory, with the status 201.
func writeAnswer(w http.ResponseWriter, form responseFormat, object runtime.Object, err error) {
	var data []byte
	if err == nil {
		data, err = json.Marshal(object)
	}
	if err == nil {
		data, err = form.fromJSON(data)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", form.contentType)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(data)
}

// translateAnswer writes an answer of the server in memory in the format that the client expects. Errors remain JSON,
// which all clients understand.
func (h *handler) translateAnswer(
	w http.ResponseWriter, response *http.Response, form responseFormat, request memapi.Request,
) {
	// Warnings are forwarded; kubectl prints them.
	for _, warning := range response.Header.Values("Warning") {
		w.Header().Add("Warning", warning)
	}
	switch {
	case request.Verb == "watch" && response.StatusCode == http.StatusOK:
		h.translateWatch(w, response.Body, form, request)
		return
	// The answer has the expected format already, so it is copied without decoding it.
	case response.StatusCode >= http.StatusMultipleChoices, form.contentType == jsonContentType && !form.isTable:
		w.Header().Set("Content-Type", jsonContentType)
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
		return
	}
	data, err := io.ReadAll(response.Body)
	media := form.contentType
	var kind metav1.TypeMeta
	if err == nil {
		err = json.Unmarshal(data, &kind)
	}
	switch {
	case err != nil:
	// A successful deletion is answered with a Status, for which tables are not defined.
	case statusKinds[kind.Kind]:
		media = jsonContentType
	case form.isTable:
		data, err = h.renderTable(data, form, request.Resource, true)
	default:
		data, err = form.fromJSON(data)
	}
	if err != nil {
		writeError(w, fmt.Errorf("translating the answer: %w", err))
		return
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(data)
}
