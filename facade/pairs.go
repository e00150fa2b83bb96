package facade

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"go.uber.org/zap/zapcore"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/panics"
)

type pair struct {
	key   string
	value any
}

// pairs are the values of the message, then those of the logger, each key once; the namespace and the name of the
// object are taken out of them.
func (l *lineCore) pairs(fields []zapcore.Field) (pairs []pair, about string) {
	own := decoded(fields)
	var namespace, name string
	for _, p := range append(own, without(decoded(l.fields), own)...) {
		text, isText := p.value.(string)
		switch {
		case p.key == "namespace" && isText:
			namespace = text
		case p.key == "name" && isText:
			name = text
		default:
			pairs = append(pairs, p)
		}
	}
	switch {
	case name == "" && namespace != "":
		return append(pairs, pair{"namespace", namespace}), ""
	case namespace != "":
		return pairs, namespace + "/" + name
	default:
		return pairs, name
	}
}

// decoded are the values of the fields; of two with one key, the later value, at the place of the first.
func decoded(fields []zapcore.Field) []pair {
	pairs := make([]pair, 0, len(fields))
	for _, field := range fields {
		values := zapcore.NewMapObjectEncoder()
		field.AddTo(values)
		value, ok := values.Fields[field.Key]
		if !ok {
			continue
		}
		if at := slices.IndexFunc(pairs, func(p pair) bool { return p.key == field.Key }); at >= 0 {
			pairs[at].value = value
			continue
		}
		pairs = append(pairs, pair{field.Key, value})
	}
	return pairs
}

func without(pairs, others []pair) []pair {
	return slices.DeleteFunc(pairs, func(p pair) bool {
		return slices.ContainsFunc(others, func(other pair) bool { return other.key == p.key })
	})
}

// shown is a value on one line.
func shown(value any) string {
	switch value := value.(type) {
	case string:
		return quoted(value)
	case error, fmt.Stringer:
		return quoted(panics.Text(value))
	}
	if text := reflect.ValueOf(value); text.Kind() == reflect.String {
		return quoted(text.String())
	}
	if data, err := json.Marshal(value); err == nil {
		return string(escapedJSON(data))
	}
	return quoted(fmt.Sprint(value))
}
