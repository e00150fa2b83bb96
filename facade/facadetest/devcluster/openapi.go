package devcluster

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the document of the built-in kinds
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	handler2 "k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// builtInDocument is the compressed OpenAPI 2 document of the built-in kinds.
//
//go:generate go run openapi/generate.go
//go:embed openapi/kubernetes.json.gz
var builtInDocument []byte

const (
	openAPI2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	openAPI3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// publisher builds the OpenAPI documents on request and caches them. Decoding the document of the built-in kinds takes
// time and memory, and most clients do not need it.
type publisher struct {
	mu sync.Mutex
	// state identifies the definitions from which the documents were built.
	state     string
	documents map[string][]byte
}

// serveOpenAPI answers requests for /openapi/v2 and /openapi/v3. One request at a time builds documents.
func (h *handler) serveOpenAPI(w http.ResponseWriter, r *http.Request, parts []string) {
	h.openAPI.mu.Lock()
	defer h.openAPI.mu.Unlock()
	definitions, state, err := h.publishedDefinitions(r)
	if err != nil {
		writeError(w, err)
		return
	}
	// A change of any definition invalidates all documents.
	if h.openAPI.documents == nil || h.openAPI.state != state {
		h.openAPI.state, h.openAPI.documents = state, map[string][]byte{}
	}
	// The documents differ by their path and by their format.
	path := strings.Join(parts, "/")
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	media := jsonContentType
	switch {
	case strings.Contains(accepted, "com.github.proto-openapi.spec.v2") && path == "v2":
		media = openAPI2Protobuf
	case strings.Contains(accepted, "com.github.proto-openapi.spec.v3") && path != "v3":
		media = openAPI3Protobuf
	}
	data, known := h.openAPI.documents[path+" "+media]
	if !known {
		if data, err = h.buildDocument(r, path, media, definitions); err != nil {
			writeError(w, err)
			return
		}
		if data == nil {
			http.NotFound(w, r)
			return
		}
		h.openAPI.documents[path+" "+media] = data
	}
	// The hash of the content is a strong entity tag, so clients can revalidate their caches.
	sum := sha256.Sum256(data)
	w.Header().Set("Etag", `"`+hex.EncodeToString(sum[:])+`"`)
	w.Header().Set("Content-Type", media)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "no-cache, private") // clients cache it, but must revalidate it
	// ServeContent answers conditional requests with 304.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// publishedDefinitions returns all definitions, and a text that changes whenever one of them does.
func (h *handler) publishedDefinitions(r *http.Request) ([]*apiextensionsv1.CustomResourceDefinition, string, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := h.readDocument(r, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", list); err != nil {
		return nil, "", err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	var state strings.Builder
	for i := range list.Items {
		one := &list.Items[i]
		all = append(all, one)
		// The generation changes with the spec; the uid changes when a definition is recreated.
		fmt.Fprintf(&state, "%s:%s:%d ", one.Name, one.UID, one.Generation)
	}
	return all, state.String(), nil
}

// buildDocument builds one document. It returns nil if the path does not have a document.
func (h *handler) buildDocument(
	r *http.Request, path, media string, definitions []*apiextensionsv1.CustomResourceDefinition,
) (data []byte, err error) {
	var document any
	switch path {
	case "v2":
		document, err = wholeDocument(definitions)
	case "v3":
		document, err = h.documentIndex(r)
	default:
		group, ok := strings.CutPrefix(path, "v3/")
		if !ok {
			return nil, nil
		}
		var found *spec3.OpenAPI
		if found, err = groupDocument(group, definitions); found == nil {
			return nil, err
		}
		document = found
	}
	if err == nil {
		data, err = json.Marshal(document)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("building the OpenAPI document %s: %w", path, err)
	// The protobuf forms are derived from JSON by the code of the real server.
	case media == openAPI2Protobuf:
		return handler2.ToProtoBinary(data)
	case media == openAPI3Protobuf:
		return handler3.ToV3ProtoBinary(data)
	default:
		return data, nil
	}
}

// readBuiltIn decodes the document of the built-in kinds. It is not cached, because it is large and requested rarely.
func readBuiltIn() (*spec.Swagger, error) {
	zip, err := gzip.NewReader(bytes.NewReader(builtInDocument))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		return nil, err
	}
	document := &spec.Swagger{}
	return document, document.UnmarshalJSON(data)
}

// wholeDocument returns the OpenAPI 2 document of all kinds.
func wholeDocument(definitions []*apiextensionsv1.CustomResourceDefinition) (*spec.Swagger, error) {
	builtIn, err := readBuiltIn()
	if err != nil {
		return nil, err
	}
	var custom []*spec.Swagger
	for _, crd := range definitions {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			// Nullable is not a part of OpenAPI 2.
			one, err := builder.BuildOpenAPIV2(crd, v.Name, builder.Options{V2: true, StripNullable: true})
			if err != nil {
				return nil, err
			}
			custom = append(custom, one)
		}
	}
	return builder.MergeSpecs(builtIn, custom...)
}

// documentIndex returns the list of OpenAPI 3 documents. Its hashes change with any definition, because clients cache
// documents by their hash.
func (h *handler) documentIndex(r *http.Request) (map[string]any, error) {
	paths := map[string]any{}
	// All documents get the same hash. A change of one definition invalidates the others as well, which is correct but
	// not minimal.
	sum := sha256.Sum256([]byte(h.openAPI.state))
	add := func(path string) {
		paths[path] = map[string]string{
			"serverRelativeURL": "/openapi/v3/" + path + "?hash=" + strings.ToUpper(hex.EncodeToString(sum[:16])),
		}
	}
	add("api/v1")
	var groups metav1.APIGroupList
	if err := h.readDocument(r, "/apis", &groups); err != nil {
		return nil, err
	}
	for _, group := range groups.Groups {
		for _, v := range group.Versions {
			add("apis/" + v.GroupVersion)
		}
	}
	return map[string]any{"paths": paths}, nil
}

// groupDocument returns the OpenAPI 3 document of one version of a group, or nil if the group version is not served.
func groupDocument(
	path string, definitions []*apiextensionsv1.CustomResourceDefinition,
) (*spec3.OpenAPI, error) {
	var all []*spec3.OpenAPI
	for _, crd := range definitions {
		for _, v := range crd.Spec.Versions {
			if !v.Served || path != "apis/"+crd.Spec.Group+"/"+v.Name {
				continue
			}
			one, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{IncludeSelectableFields: true})
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	// A group version has either custom or built-in resources.
	if len(all) > 0 {
		return builder.MergeSpecsV3(all...)
	}
	builtIn, err := readBuiltIn()
	if err != nil {
		return nil, err
	}
	kept := map[string]spec.PathItem{}
	for name, item := range builtIn.Paths.Paths {
		if strings.HasPrefix(name, "/"+path+"/") {
			kept[name] = item
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	// The document of a group version only contains the definitions that it refers to.
	builtIn.Paths.Paths = kept
	dropUnused(builtIn)
	return openapiconv.ConvertV2ToV3(builtIn), nil
}

// dropUnused removes definitions that the paths do not refer to, directly or through other definitions.
func dropUnused(document *spec.Swagger) {
	used := map[string]bool{}
	var collect func(value any)
	collect = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			// References are followed recursively; the set of used definitions ends cycles.
			if ref, ok := value["$ref"].(string); ok {
				name := ref[strings.LastIndexByte(ref, '/')+1:]
				if definition, ok := document.Definitions[name]; ok && !used[name] {
					used[name] = true
					collect(plainJSON(definition))
				}
			}
			for _, one := range value {
				collect(one)
			}
		case []any:
			for _, one := range value {
				collect(one)
			}
		}
	}
	// Paths are the roots of the references.
	collect(plainJSON(document.Paths))
	for name := range document.Definitions {
		if !used[name] {
			delete(document.Definitions, name)
		}
	}
}

// plainJSON returns a value in the form of decoded JSON.
func plainJSON(value any) (out any) {
	data, err := json.Marshal(value)
	if err == nil {
		_ = json.Unmarshal(data, &out)
	}
	return out
}
