package codec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// Lists says how the items of changed lists are recognised, so that fields which the Go type does not have stay with
// their items.
type Lists struct {
	// Keys gives the fields that identify the items of a list by the schema of the kind; nil if there are none, or if
	// the schema is not known. It is called only where an item has fields that the Go type does not have, and where the
	// tags of Go fields do not say. It may ask the API server. Nil is for kinds without a schema.
	Keys func(list diff.Path) []string
	// Lost is called with the paths of fields that are lost because items could not be recognised. Nil does nothing.
	Lost func(fields []string)
}

// guesses are keys that items of most lists have, if the type and the schema name none.
var guesses = [][]string{{"name"}, {"key"}, {"id"}, {"type"}, {"port", "protocol"}}

// furtherKeys complete the merge key of a strategic patch where it is not unique, as in ports of containers. The tags
// of the built-in types do not have them.
var furtherKeys = []string{"protocol", "whenUnsatisfiable"}

// taggedKeys are the keys that the tag of a list has: one, or one with another.
func taggedKeys(tag reflect.StructTag) (candidates [][]string) {
	if keys := tag.Get("listMapKey"); keys != "" {
		candidates = append(candidates, strings.Split(keys, ","))
	}
	if key := tag.Get("patchMergeKey"); key != "" {
		candidates = append(candidates, []string{key})
		for _, further := range furtherKeys {
			candidates = append(candidates, []string{key, further})
		}
	}
	return candidates
}

// origins gives the former place of each item, and -1 for a new one.
func (m *merger) origins(raw, before, after []any) []int {
	p := newPairing(raw, before, after)
	typ, tag := fieldAt(m.typ, m.path)
	if by := m.identify(p, typ, tag); by != nil {
		p.pairByKeys(by)
	} else {
		p.pairByValue()
	}
	for _, i := range p.lost {
		for _, field := range hiddenFields(raw[i], before[i], typ, m.path) {
			if text := FormatPath(field); !slices.Contains(m.lost, text) {
				m.lost = append(m.lost, text)
			}
		}
	}
	return p.origins
}

// identify finds keys of the items; nil if there are none.
func (m *merger) identify(p *pairing, typ reflect.Type, tag reflect.StructTag) *identified {
	if by := p.choose(taggedKeys(tag)); by != nil {
		return by
	}
	if m.lists.Keys != nil && len(hiddenFields(p.raw, p.before, typ, nil)) > 0 {
		if by := p.choose([][]string{m.lists.Keys(m.path)}); by != nil {
			return by
		}
	}
	return p.choose(guesses)
}

// isNested is true for values with parts.
func isNested(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

// hiddenFields are the paths of what a raw value has and its Go type does not: before is what it looks like through
// that. A field that the encoding leaves out, such as a zero, is not hidden. Paths lead through lists.
func hiddenFields(raw, before any, typ reflect.Type, at diff.Path) (hidden []diff.Path) {
	switch raw := raw.(type) {
	case map[string]any:
		seen, _ := before.(map[string]any)
		for key, value := range raw {
			shown, isShown := seen[key]
			if value == nil || isShown && !isNested(value) {
				continue
			}
			path := append(slices.Clip(at), key)
			part, _, known := partOf(typ, key)
			if isShown {
				hidden = append(hidden, hiddenFields(value, shown, part, path)...)
			} else if !known {
				hidden = append(hidden, path)
			}
		}
	case []any:
		seen, _ := before.([]any)
		for i, item := range raw {
			if len(seen) == len(raw) && isNested(item) {
				hidden = append(hidden, hiddenFields(item, seen[i], typ, at)...)
			}
		}
	}
	return hidden
}

// fieldAt gives the type of the value at a path, which may lead through lists, and the tag of its Go field; a nil type
// if it may be anything.
func fieldAt(typ reflect.Type, path diff.Path) (found reflect.Type, tag reflect.StructTag) {
	for _, key := range path {
		if typ, tag, _ = partOf(typ, key); typ == nil {
			return nil, ""
		}
	}
	return typ, tag
}

// partOf gives the type of a field of a mapping, or of the items of a list, and its tag; and whether there is such a
// field. The type is nil if it may be anything.
func partOf(typ reflect.Type, key string) (reflect.Type, reflect.StructTag, bool) {
	for typ != nil && !encodesItself(typ) && (typ.Kind() == reflect.Pointer || isList(typ)) {
		typ = typ.Elem()
	}
	switch {
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
