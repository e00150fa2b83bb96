package schemas

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Prune removes unknown fields, and nulls where the schema does not allow them, from an object without apiVersion and
// kind. It returns the paths of the unknown fields. Metadata that cannot be decoded are an error.
func (v *Version) Prune(object map[string]any) (unknown []string, err error) {
	// Metadata are pruned even if the kind keeps unknown fields.
	unknown, err = coerceMetadata(object, nil)
	if err != nil {
		return nil, err // its text equals that of the real server
	}
	if !v.preservesUnknownFields {
		unknown = append(unknown, pruning.PruneWithOptions(
			object, v.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true},
		)...)
		dropNulls(object, v.structural)
	}
	// Embedded objects are pruned after the object that contains them.
	within, err := v.coerceEmbedded(object)
	return append(unknown, within...), err
}

// Decode removes fields from a stored object that the version does not have, or no longer has.
func (v *Version) Decode(object map[string]any) {
	if v.preservesUnknownFields {
		return
	}
	pruning.Prune(object, v.structural, true)
	dropNulls(object, v.structural)
}

// dropNulls removes nulls that the schema neither allows nor replaces by a default. A nullable field keeps its null.
func dropNulls(value any, s *schema.Structural) {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			of := schemaOf(name, s)
			if one == nil && of != nil && !of.Nullable && of.Default.Object == nil {
				delete(value, name)
				continue
			}
			dropNulls(one, of)
		}
	case []any:
		if s == nil {
			return
		}
		for _, one := range value {
			dropNulls(one, s.Items)
		}
	}
}
