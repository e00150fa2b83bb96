package hierarchies

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/codec"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Label adds labels to the children, and with [Nested] also to objects inside of them. Existing labels keep their
// values, except with [Forced]. Kopf: label.
func Label(children any, labels map[string]string, opts ...LabelOption) error {
	s := collectOptions(opts)
	paths, err := parsePaths(s.nestedPaths)
	if err != nil {
		return err
	}
	if err := eachObject(children, func(c child) error {
		return c.labelWithNested(labels, s.isForced,
			paths)
	}); err != nil {
		return err
	}
	return missingPathsError(paths)
}

// Inherited returns the labels of an owner that its children inherit: all except those of kubernetes.io, k8s.io and
// their subdomains. Kubernetes acts on such labels, for example on the pod security level. Labels of app.kubernetes.io
// are inherited.
func Inherited(labels map[string]string) map[string]string {
	inherited := maps.Clone(labels)
	maps.DeleteFunc(inherited, func(key, _ string) bool {
		domain, _, ok := strings.Cut(key, "/")
		reserved := domain == "kubernetes.io" || domain == "k8s.io" ||
			strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
		return ok && reserved && domain != "app.kubernetes.io"
	})
	return inherited
}

// nestedPath is a path of [Nested], and whether any object of the call has it. One call can label objects of several
// types, so a path that only some types have is not an error.
type nestedPath struct {
	path       diff.Path
	exists     bool  // in at least one object
	missingErr error // the error for the first typed object whose type lacks the path
}

// parsePaths parses the paths of [Nested].
func parsePaths(texts []string) (paths []*nestedPath, err error) {
	for _, text := range texts {
		path, err := codec.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("labelling nested fields: %w", err)
		}
		paths = append(paths, &nestedPath{path: path})
	}
	return paths, nil
}

// missingPathsError returns an error for each path that no object has: a typing error in a path would otherwise go
// unnoticed. A mapping does not cause this error, because its fields are optional.
func missingPathsError(paths []*nestedPath) error {
	var failed []error
	for _, one := range paths {
		if !one.exists && one.missingErr != nil {
			failed = append(failed, fmt.Errorf("labelling %s: %w", codec.FormatPath(one.path), one.missingErr))
		}
	}
	return errors.Join(failed...)
}

// labelWithNested labels the object and the objects at the nested paths, and records which paths exist.
func (c child) labelWithNested(labels map[string]string, forced bool, paths []*nestedPath) error {
	if err := c.addLabels(labels, forced); err != nil {
		return fmt.Errorf("labelling: %w", err)
	}
	for _, one := range paths {
		nested, there, err := c.childAtPath(one.path)
		if errors.As(err, &absentError{}) {
			if one.missingErr == nil {
				one.missingErr = err
			}
			continue
		}
		// For a typed object, the type has the field, even if its value is nil here.
		one.exists = one.exists || there || c.typed != nil
		if err == nil && there {
			err = nested.addLabels(labels, forced)
		}
		if err != nil {
			return fmt.Errorf("labelling %s: %w", codec.FormatPath(one.path), err)
		}
	}
	return nil
}

// addLabels adds labels to the metadata of one object.
func (c child) addLabels(labels map[string]string, forced bool) error {
	if c.typed != nil {
		// Copy before the change: programs often use one map for the labels of an object, its selector and its pod
		// template.
		all := maps.Clone(c.typed.GetLabels())
		if all == nil {
			all = make(map[string]string, len(labels))
		}
		for key, value := range labels {
			if _, there := all[key]; !there || forced {
				all[key] = value
			}
		}
		c.typed.SetLabels(all)
		return nil
	}
	metadata, err := c.ensureMetadata()
	if err != nil {
		return err
	}
	all, ok := metadata["labels"].(map[string]any)
	if !ok && metadata["labels"] != nil {
		return fmt.Errorf("its labels are a %T, not a mapping", metadata["labels"])
	}
	if all == nil {
		all = make(map[string]any, len(labels))
		metadata["labels"] = all
	}
	for key, value := range labels {
		if _, there := all[key]; !there || forced {
			all[key] = value
		}
	}
	return nil
}
