package devcluster

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// errNoObject is the error for a document that is not an object.
var errNoObject = errors.New("a document is not an object: it has no apiVersion or no kind")

// loadObjects stores the objects of dumps and manifests, and the namespaces that every cluster has. It also creates missing
// namespaces of the objects, because a dump of one namespace does not contain the namespace itself.
func (c *Cluster) loadObjects(paths []string) error {
	var objects []map[string]any
	for _, path := range paths {
		found, err := readDumps(path)
		if errors.Is(err, os.ErrNotExist) && path == c.options.Save {
			continue // the first run of "--load x --save x"
		}
		if err != nil {
			return fmt.Errorf("loading %s: %w", path, err)
		}
		objects = append(objects, found...)
	}
	// Objects with a uid, definitions and namespaces are stored first. The others are created, which requires their
	// kinds and namespaces.
	var early, late []map[string]any
	names := []string{"default", "kube-system", "kube-public", "kube-node-lease"}
	for _, object := range objects {
		if object["kind"] != definitionsResource.Kind {
			c.loaded = append(c.loaded, &unstructured.Unstructured{Object: object})
		}
		isEarly := at(object, "metadata", "uid") != "" || object["kind"] == definitionsResource.Kind ||
			object["kind"] == namespaces.Kind
		if isEarly {
			early = append(early, object)
		} else {
			late = append(late, object) // its namespace must exist before
		}
		// Namespaces are created for all objects, including those that are stored with their uids.
		names = append(names, at(object, "metadata", "namespace"))
	}
	// The first error ends the remaining steps.
	err := c.memory.Load(early...)
	for _, name := range names {
		if err == nil && name != "" && c.memory.Object(namespaces, "", name) == nil {
			err = c.createNamespace(name)
		}
	}
	if err == nil {
		err = c.memory.Load(late...)
	}
	if err != nil {
		return fmt.Errorf("loading %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// readDumps reads a file, or the files of a folder, except for kustomizations.
func readDumps(path string) ([]map[string]any, error) {
	files := []string{path}
	// A single file may have any extension; a folder is filtered by the extensions of manifests.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = manifestsIn(path); err != nil {
			return nil, err
		}
	}
	var all []map[string]any
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := parseDump(data)
		// The caller's error has the path, but not the name of a file in a folder.
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

// manifestsIn returns the manifests of a folder. Subfolders are not searched.
func manifestsIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		name := entry.Name()
		isManifest := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
		if isManifest && !entry.IsDir() && strings.TrimSuffix(name, filepath.Ext(name)) != "kustomization" {
			files = append(files, filepath.Join(folder, name))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder has no .yaml, .yml or .json file")
	}
	return files, nil
}

// parseDump parses YAML documents. Each is an object or a list of objects; empty documents are skipped.
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
		// JSON is converted as well, because it is valid YAML.
		if document, err = yaml.YAMLToJSON(document); err != nil {
			return nil, err
		}
		var object map[string]any
		// The decoder of apimachinery keeps integers as int64, which the server expects.
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

// saveObjects writes all objects except for events to the file of the options.
func (c *Cluster) saveObjects() error {
	if c.options.Save == "" {
		return nil
	}
	kept := []any{}
	// One key for the whole dump: equal values of different Secrets have equal digests.
	digest := newDigest()
	for _, object := range c.memory.Objects() {
		if object["kind"] == "Secret" && object["apiVersion"] == "v1" && !c.options.WithSecrets {
			hideSecret(object, digest)
		}
		kept = append(kept, object)
	}
	// A list is what "kubectl get -o yaml" prints, so that kubectl and --load both read the file.
	data, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": kept})
	if err != nil {
		return fmt.Errorf("saving objects: %w", err)
	}
	return writeAtomically(c.options.Save, data)
}

// newDigest returns a function that replaces values by digests. Its key is random and is not stored, so that a value
// cannot be guessed by comparing digests of likely values.
func newDigest() func(value string) string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // crypto/rand does not fail
	return func(value string) string {
		sum := hmac.New(sha256.New, key)
		_, _ = sum.Write([]byte(value))
		return digestPrefix + hex.EncodeToString(sum.Sum(nil))
	}
}

// digestPrefix is the prefix of each digest.
const digestPrefix = "digest:"

// hideSecret replaces the values of a Secret by digests. Within one dump, equal values have equal digests. Annotations
// that contain a value are removed, and so are those with former configurations, which may contain values in compressed
// form.
func hideSecret(object map[string]any, digest func(value string) string) {
	values, _ := object["data"].(map[string]any)
	var secrets []string
	for name, value := range values {
		encoded := fmt.Sprint(value)
		// An annotation can contain a value as text or in its encoded form, so both are searched for.
		plain, _ := base64.StdEncoding.DecodeString(encoded)
		secrets = append(secrets, encoded, string(plain))
		if strings.HasPrefix(string(plain), digestPrefix) {
			continue // a digest from an earlier dump
		}
		values[name] = base64.StdEncoding.EncodeToString([]byte(digest(encoded)))
	}
	// Annotations such as last-applied-configuration contain the Secret's former values.
	annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations")
	for name := range annotations {
		contains := func(secret string) bool {
			return secret != "" && strings.Contains(fmt.Sprint(annotations[name]), secret)
		}
		if strings.HasSuffix(name, "-configuration") || slices.ContainsFunc(secrets, contains) {
			unstructured.RemoveNestedField(object, "metadata", "annotations", name)
		}
	}
}
