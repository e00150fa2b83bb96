package memapi

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// Definitions reads custom resource definitions from files of YAML or JSON, with one document or several, and from the
// files in folders. Documents of other kinds are passed over; it is an error if a path has no definition at all.
func Definitions(paths ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("reading custom resource definitions: %w", err)
		}
		before := len(all)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading custom resource definitions: %w", err)
			}
			found, err := ParseDefinitions(data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			all = append(all, found...)
		}
		if len(all) == before {
			return nil, fmt.Errorf("there is no custom resource definition in %s", path)
		}
	}
	return all, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) && !entry.IsDir() {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// ParseDefinitions is [Definitions] for what is in memory already, such as an embedded file.
func ParseDefinitions(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err == nil {
			err = sigsyaml.Unmarshal(document, &crd.TypeMeta)
		}
		if err == nil && crd.Kind == definitionsResource.Kind {
			err = sigsyaml.UnmarshalStrict(document, crd)
			all = append(all, crd)
		}
		if err != nil {
			return nil, fmt.Errorf("parsing a custom resource definition: %w", err)
		}
		if version := crd.APIVersion; crd.Kind == definitionsResource.Kind &&
			version != definitionsResource.groupVersion().String() {
			return nil, fmt.Errorf("%s has version %s, want %s", crd.Name, version, definitionsResource.groupVersion())
		}
	}
}

// WithoutRules are copies of the definitions without x-kubernetes-validations: their rules in CEL are not evaluated
// here, so a definition that has any is refused. [Admission] can have the rules that a test is about, in Go.
func WithoutRules(
	definitions ...*apiextensionsv1.CustomResourceDefinition,
) []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range definitions {
		crd = crd.DeepCopy()
		for _, v := range crd.Spec.Versions {
			if v.Schema != nil {
				dropRules(v.Schema.OpenAPIV3Schema)
			}
		}
		all = append(all, crd)
	}
	return all
}

func dropRules(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.XValidations = nil
	dropRules(s.Not)
	if s.Items != nil {
		dropRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		dropRules(s.AdditionalProperties.Schema)
	}
	for _, several := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range several {
			dropRules(&several[i])
		}
	}
	for name, property := range s.Properties {
		dropRules(&property)
		s.Properties[name] = property
	}
}
