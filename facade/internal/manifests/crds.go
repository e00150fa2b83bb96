package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// CRD is a CRD of a file.
type CRD struct {
	// Text is the YAML or JSON of the file, with its comments.
	Text string
	// Resources are its served versions.
	Resources []discovery.Resource
}

// ReadCRDs reads the CRDs of a file, or of the YAML and JSON files in a folder, in the order of their names. Other
// objects are ignored. It is an error if there are no CRDs.
func ReadCRDs(path string) (all []CRD, err error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = manifestFiles(path); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := parseCRDs(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there are no CRDs", path)
	}
	return all, nil
}

// manifestFiles returns the files of a folder that can be manifests.
func manifestFiles(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	return files, nil
}

// parseCRDs returns the CRDs among the documents of a file.
func parseCRDs(content string) (all []CRD, err error) {
	// Files can begin with the separator, and have line ends of Windows.
	content = "\n" + strings.ReplaceAll(content, "\r\n", "\n")
	for document := range strings.SplitSeq(content, "\n---") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			return nil, err
		}
		var head struct{ Kind string }
		// Lists, texts and objects of other kinds are ignored.
		if err := yaml.Unmarshal(data, &head); err != nil || head.Kind != "CustomResourceDefinition" {
			continue
		}
		found, err := clusterneeds.FromCRD(data)
		if err != nil {
			return nil, err
		}
		all = append(all, CRD{Text: strings.TrimSpace(document) + "\n", Resources: found})
	}
	return all, nil
}
