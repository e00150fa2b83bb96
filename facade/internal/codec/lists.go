package codec

import (
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Lists determines how the items of changed lists are matched with their former state. Matched items keep the fields
// that the Go type does not have.
type Lists struct {
	// Keys returns the fields that identify the items of a list by the schema of the kind. It returns nil without such
	// fields, or if the schema is unknown. It may send a request, so it is called only if an item has fields that the
	// Go type does not have and the tags of Go fields name no keys. A nil Keys is for kinds without a schema.
	Keys func(list diff.Path) []string
	// OnLost is called with the paths of fields that are lost because items could not be matched. A nil Lost ignores
	// them.
	OnLost func(fields []string)
}

// commonKeys are keys that are common in lists. They are tried if neither type nor schema names any.
var commonKeys = [][]string{{"name"}, {"key"}, {"id"}, {"type"}, {"port", "protocol"}}

// furtherKeys complete a patchMergeKey that is not unique, as in the ports of containers. The tags of the built-in
// types do not list them.
var furtherKeys = []string{"protocol", "whenUnsatisfiable"}

// taggedKeys returns the candidates for keys that the Go tag of a list names: single keys, and pairs with one of
// furtherKeys.
func taggedKeys(tag reflect.StructTag) (candidates [][]string) {
	if keys := tag.Get("listMapKey"); keys != "" {
		candidates = append(candidates, strings.Split(keys, ","))
	}
	// The built-in types have this tag, for strategic merge patches.
	if key := tag.Get("patchMergeKey"); key != "" {
		candidates = append(candidates, []string{key})
		for _, further := range furtherKeys {
			candidates = append(candidates, []string{key, further})
		}
	}
	return candidates
}

// formerIndices returns the former index of each item, or -1 for a new one. It records the hidden fields of items that
// could not be matched.
func (m *merger) formerIndices(raw, before, after []any) []int {
	p := newPairing(raw, before, after)
	// The Go type of the list is known only from the path, since the merger works on raw values.
	typ, tag := fieldAt(m.typ, m.path)
	if by := m.identifyItems(p, typ, tag); by != nil {
		p.pairByKeys(by)
	} else {
		p.pairByValue()
	}
	// Only hidden fields can be lost: the others are in the changed item.
	for _, i := range p.lostItems {
		for _, field := range hiddenFields(raw[i], before[i], typ, m.path) {
			if text := FormatPath(field); !slices.Contains(m.lostFields, text) {
				m.lostFields = append(m.lostFields, text)
			}
		}
	}
	return p.origins
}

// identifyItems returns the items by the best keys, or nil without suitable keys. The order is: tags, schema, guesses.
func (m *merger) identifyItems(p *pairing, typ reflect.Type, tag reflect.StructTag) *identifiedItems {
	if by := p.chooseKeys(taggedKeys(tag)); by != nil {
		return by
	}
	// The schema may need a request, so it is used only if something could be lost.
	if m.lists.Keys != nil && len(hiddenFields(p.raw, p.before, typ, nil)) > 0 {
		if by := p.chooseKeys([][]string{m.lists.Keys(m.path)}); by != nil {
			return by
		}
	}
	return p.chooseKeys(commonKeys)
}

// isNested reports whether the value has parts.
func isNested(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

// hiddenFields returns the paths of fields that a raw value has and its Go type does not. Before is the value after the
// round trip through the type. A field that only the encoding omits, such as a zero, is not hidden. A value that does
// not fit into its field is. The paths have no indices of lists.
func hiddenFields(raw, before any, typ reflect.Type, at diff.Path) (hidden []diff.Path) {
	switch raw := raw.(type) {
	case map[string]any:
		seen, _ := before.(map[string]any)
		for key, value := range raw {
			shown, isShown := seen[key]
			// A plain value that the type shows is not hidden.
			if value == nil || isShown && !isNested(value) {
				continue
			}
			path := append(slices.Clip(at), key)
			part, _, known := partOf(typ, key)
			if isShown {
				hidden = append(hidden, hiddenFields(value, shown, part, path)...)
			} else if !known || !isOmittable(value) {
				hidden = append(hidden, path)
			}
		}
	case []any:
		seen, _ := before.([]any)
		for i, item := range raw {
			// With another length, the items do not correspond to each other.
			if len(seen) == len(raw) && isNested(item) {
				hidden = append(hidden, hiddenFields(item, seen[i], typ, at)...)
			}
		}
	}
	return hidden
}

// isOmittable reports whether the option omitempty omits the value.
func isOmittable(value any) bool {
	// The copy is necessary because RemoveEmpty modifies its argument.
	return reflect.ValueOf(value).IsZero() || isNested(value) && RemoveEmpty(diff.DeepCopy(value)) == nil
}

// fieldAt returns the type of the value at a path, which may lead through lists, and the tag of its Go field. The type
// is nil if the value can have any type.
func fieldAt(typ reflect.Type, path diff.Path) (found reflect.Type, tag reflect.StructTag) {
	for _, key := range path {
		if typ, tag, _ = partOf(typ, key); typ == nil {
			return nil, ""
		}
	}
	return typ, tag
}

// partOf returns the type and the tag of a field of a struct or map, or of the items of a list, and whether the field
// exists. The type is nil if it can be any.
func partOf(typ reflect.Type, key string) (reflect.Type, reflect.StructTag, bool) {
	// Pointers and lists are skipped: paths have no indices.
	for typ != nil && !encodesItself(typ) && (typ.Kind() == reflect.Pointer || isList(typ)) {
		typ = typ.Elem()
	}
	switch {
	// The content of such a type cannot be determined by its fields.
	case typ == nil || encodesItself(typ):
		return nil, "", false
	case typ.Kind() == reflect.Map:
		return typ.Elem(), "", true
	case typ.Kind() != reflect.Struct:
		return nil, "", false
	default:
		field, ok := structField(typ, key)
		return field.Type, field.Tag, ok
	}
}

// ErasedFields returns the fields of the raw object that are lost if a client replaces the object on the API server by
// the given one. These are the fields that its Go type cannot hold. Only top-level fields that the function accepts are
// compared. The paths have no indices of lists. A zero value that omitempty leaves out does not count as lost.
func ErasedFields(raw map[string]any, object client.Object, accepts func(key string) bool) (fields []string) {
	typ := reflect.TypeOf(object)
	// An unstructured object can hold every field.
	if typ.Kind() != reflect.Pointer || typ.Elem() == unstructuredType {
		return nil
	}
	// The raw object passes through the Go type and back; the difference is lost.
	codec := New[client.Object](typ.Elem())
	decoded, _ := codec.Decode(raw) // values that do not fit are lost as well
	kept, err := codec.encodeRaw(decoded)
	if err != nil {
		return nil
	}
	for _, path := range hiddenFields(raw, kept, typ, nil) {
		if accepts(path[0]) {
			fields = append(fields, FormatPath(path))
		}
	}
	// Several items of a list yield the same path.
	slices.Sort(fields)
	return slices.Compact(fields)
}
