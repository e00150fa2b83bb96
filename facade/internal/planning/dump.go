package planning

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// Dump has the objects of a file, such as the output of "kubectl get -o yaml". Custom resource definitions in it name
// the custom kinds; the names of other kinds are derived.
type Dump struct {
	objects   map[schema.GroupKind][]map[string]any
	documents map[string][]byte // the answers to discovery, by their paths
}

var _ reconcilers.PreviewSource = (*Dump)(nil)

var errNoUID = errors.New("it has no uid: make the dump with kubectl get -o yaml, which shows whole objects")

// LoadDump reads a YAML or JSON file with one or more documents: objects, or lists of them. The path "-" is the
// standard input.
func LoadDump(path string) (*Dump, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(os.Stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a dump: %w", err)
	}
	d, err := ParseDump(data)
	if err != nil {
		return nil, fmt.Errorf("reading the dump %s: %w", path, err)
	}
	return d, nil
}

// ParseDump is [LoadDump] for the content of a file.
func ParseDump(data []byte) (*Dump, error) {
	d := &Dump{objects: map[schema.GroupKind][]map[string]any{}}
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			document, err = yaml.ToJSON(document)
		}
		var value any
		if err == nil {
			err = json.Unmarshal(document, &value) // of apimachinery: integers are int64
		}
		if err == nil && value != nil {
			err = d.addValue(value)
		}
		if err != nil {
			return nil, err
		}
	}
	var err error
	d.documents, err = d.makeDocuments()
	return d, err
}

// addValue adds an object, or the items of a list.
func (d *Dump) addValue(value any) error {
	body, _ := value.(map[string]any)
	object := unstructured.Unstructured{Object: body}
	kind := object.GroupVersionKind()
	if body == nil || kind.Kind == "" || kind.Version == "" {
		return errors.New("a document is not an object with an apiVersion and a kind")
	}
	if items, isList := body["items"].([]any); isList {
		for _, item := range items {
			if err := d.addValue(item); err != nil {
				return err
			}
		}
		return nil
	}
	if _, isMapping := body["metadata"].(map[string]any); !isMapping || object.GetName() == "" {
		return fmt.Errorf("an object of kind %s has no name", kind.Kind)
	}
	// The memory of an object belongs to its uid.
	if object.GetUID() == "" && kind.GroupKind() != definitions {
		return fmt.Errorf("%s %s: %w", kind.Kind, object.GetName(), errNoUID)
	}
	unstructured.RemoveNestedField(body, "metadata", "managedFields")
	d.objects[kind.GroupKind()] = append(d.objects[kind.GroupKind()], body)
	return nil
}

// Get implements discovery.Getter.
func (d *Dump) Get(_ context.Context, path string) ([]byte, error) { return d.documents[path], nil }

// ListObjects implements [reconcilers.PreviewSource]. Objects of another version get that of the resource.
func (d *Dump) ListObjects(
	_ context.Context, r discovery.Resource, namespace, selector string, visit func(body map[string]any) error,
) error {
	by, err := labels.Parse(selector)
	if err != nil {
		return err
	}
	for _, body := range d.objects[r.GroupKind()] {
		object := unstructured.Unstructured{Object: body}
		if namespace != metav1.NamespaceAll && namespace != object.GetNamespace() ||
			!by.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		object.SetAPIVersion(r.GroupVersion().String())
		if err := visit(body); err != nil {
			return err
		}
	}
	return nil
}
