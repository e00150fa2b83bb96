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

// Definitions reads custom resource definitions from YAML or JSON files with one or more documents, and from the files
// of folders. Documents of other kinds are skipped. A path without any definition is an error.
func Definitions(paths ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("reading custom resource definitions: %w", err)
		}
		// Each path must contain a definition: a wrong path is a common mistake.
		before := len(all)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading custom resource definitions: %w", err)
			}
			found, err := parseDefinitions(data)
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

// filesOf returns the path itself, or the YAML and JSON files of a folder. Subfolders are not searched.
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

// parseDefinitions is like [Definitions], but reads data in memory.
func parseDefinitions(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		// The kind decides whether the document is a definition, so it is decoded first and without strictness.
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
		// The former version v1beta1 would decode without an error, but with most of its fields missing.
		if version := crd.APIVersion; crd.Kind == definitionsResource.Kind &&
			version != definitionsResource.groupVersion().String() {
			return nil, fmt.Errorf("%s has version %s, want %s", crd.Name, version, definitionsResource.groupVersion())
		}
	}
}
