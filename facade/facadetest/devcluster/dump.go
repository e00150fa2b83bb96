package devcluster

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

var errNoObject = errors.New("a document is not an object: it has no apiVersion or no kind")

// load stores the objects of dumps. Namespaces that they do not have are made, as a dump of one namespace does not
// contain the namespace itself.
func (c *Cluster) load(paths []string) error {
	var objects []map[string]any
	for _, path := range paths {
		found, err := readDumps(path)
		if errors.Is(err, os.ErrNotExist) && path == c.options.Save {
			continue // the first time of "--load x --save x"
		}
		if err != nil {
			return fmt.Errorf("loading %s: %w", path, err)
		}
		objects = append(objects, found...)
	}
	if len(objects) == 0 {
		return nil
	}
	if err := c.memory.Load(objects...); err != nil {
		return fmt.Errorf("loading %s: %w", strings.Join(paths, ", "), err)
	}
	for _, object := range objects {
		if object["kind"] != definitionsResource.Kind {
			c.loaded = append(c.loaded, &unstructured.Unstructured{Object: object})
		}
		name := at(object, "metadata", "namespace")
		if name == "" || c.memory.Object(namespaces, "", name) != nil {
			continue
		}
		if err := c.createNamespace(name); err != nil {
			return fmt.Errorf("creating the namespace %s: %w", name, err)
		}
	}
	return nil
}

// readDumps reads a file, or the files of a folder. Kustomizations in it are not objects.
func readDumps(path string) ([]map[string]any, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
	}
	var all []map[string]any
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := parseDump(data)
		if err != nil && file != path {
			err = fmt.Errorf("%s: %w", file, err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// parseDump reads YAML documents, each an object or a list.
func parseDump(data []byte) ([]map[string]any, error) {
	var all []map[string]any
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if document, err = yaml.YAMLToJSON(document); err != nil {
			return nil, err
		}
		var object map[string]any
		if err := utiljson.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		switch {
		case object == nil:
		case at(object, "apiVersion") == "" || at(object, "kind") == "":
			return nil, errNoObject
		case (&unstructured.Unstructured{Object: object}).IsList():
			all = append(all, items(object, "items")...)
		default:
			all = append(all, object)
		}
	}
}

// save writes all objects but events to the file of the options.
func (c *Cluster) save() error {
	if c.options.Save == "" {
		return nil
	}
	kept := []any{}
	for _, object := range c.memory.Objects() {
		if object["kind"] == "Secret" && object["apiVersion"] == "v1" && !c.options.WithSecrets {
			hideSecret(object)
		}
		kept = append(kept, object)
	}
	data, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": kept})
	if err != nil {
		return fmt.Errorf("saving objects: %w", err)
	}
	return writeAtomically(c.options.Save, data)
}

// hideSecret replaces the values of a Secret by digests, which still differ when the values do. Annotations that hold
// former configurations are removed, as these contain the values.
func hideSecret(object map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, _ := object[field].(map[string]any)
		for name, value := range values {
			sum := sha256.Sum256([]byte(fmt.Sprint(value)))
			digest := "sha256:" + hex.EncodeToString(sum[:])
			if field == "data" {
				digest = base64.StdEncoding.EncodeToString([]byte(digest))
			}
			values[name] = digest
		}
	}
	annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations")
	for name := range annotations {
		if strings.HasSuffix(name, "/last-applied-configuration") || strings.HasSuffix(name,
			"/last-handled-configuration") {
			unstructured.RemoveNestedField(object, "metadata", "annotations", name)
		}
	}
}
