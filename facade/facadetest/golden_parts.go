package facadetest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/internal/normal"
)

// goldenFormatter formats the parts of one golden file.
type goldenFormatter struct {
	names *normal.Names // the uids and generated names in all parts
}

// goldenPart is a part with its own format in golden files: a title, some rows, and an object.
type goldenPart interface {
	goldenRows() (title string, rows []row, object client.Object, err error)
}

// row is one named value of a rendered part. It can take several lines.
type row struct {
	name  string
	value any // left out if empty
}

// formatParts returns the content of a golden file with the parts. It collects the objects of all parts first, so that
// names and uids are replaced in the same way in each part.
func formatParts(parts []any) (string, error) {
	if len(parts) == 0 {
		return "", errors.New("there is nothing to compare: give it calls, writes, objects, or an outcome")
	}
	var all []map[string]any
	for i, part := range parts {
		found, err := objectsInPart(part)
		if err != nil {
			return "", fmt.Errorf("part %d, a %T: %w", i, part, err)
		}
		all = append(all, found...)
	}
	p := goldenFormatter{normal.NewNames(all)}
	var texts []string
	for i, part := range parts {
		text, err := p.formatPart(part)
		if err != nil {
			return "", fmt.Errorf("part %d, a %T: %w", i, part, err)
		}
		// The join adds a blank line between parts.
		texts = append(texts, strings.TrimRight(text, "\n")+"\n")
	}
	return strings.Join(texts, "\n"), nil
}

// formatPart formats one part by its type.
func (p goldenFormatter) formatPart(part any) (string, error) {
	switch v := part.(type) {
	case string:
		return p.names.NormalizeText(v), nil
	case []HandlerCall:
		return p.formatCalls(v), nil
	case []Write:
		return p.formatWrites(v), nil
	case goldenPart:
		return p.formatRows(v)
	case client.ObjectList, client.Object:
		return p.formatObjects(part)
	default:
		text, err := yaml.Marshal(v)
		return p.names.NormalizeText(string(text)), err
	}
}

// objectsInPart returns the objects in a part, encoded as for the API server. Calls, writes and other values have no
// objects.
func objectsInPart(part any) (all []map[string]any, err error) {
	switch v := part.(type) {
	case nil:
		return nil, errors.New("it is nil: leave it out")
	case goldenPart:
		_, _, object, err := v.goldenRows()
		if err != nil {
			return nil, err
		}
		return objectsInPart(object)
	// This case precedes that of lists: unstructured objects implement the methods of both.
	case client.Object:
		if reflect.ValueOf(v).IsNil() {
			return nil, errors.New("it is nil: leave it out")
		}
		body, err := encodeBody(v)
		return []map[string]any{body}, err
	case client.ObjectList:
		items, err := meta.ExtractList(v)
		if err != nil {
			return nil, fmt.Errorf("reading its items: %w", err)
		}
		for _, item := range items {
			found, err := objectsInPart(item)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
		return all, nil
	default:
		return nil, nil
	}
}

// encodeBody returns the object as JSON values, with its kind if the scheme of client-go has its type. For other types,
// the kind is the name of the Go type, without an apiVersion.
func encodeBody(object client.Object) (body map[string]any, err error) {
	// The JSON decoder of Kubernetes keeps integers, which encoding/json would decode to floats.
	data, err := json.Marshal(object)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &body)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding it as JSON: %w", err)
	}
	kind := kindOf("Golden", object, clientgoscheme.Scheme)
	if body["kind"] = kind.Kind; kind.Group != unknownGroup {
		body["apiVersion"] = kind.GroupVersion().String()
	}
	return body, nil
}

// formatObjects formats the objects of a part as YAML documents, sorted by kind, namespace and name.
func (p goldenFormatter) formatObjects(part any) (string, error) {
	found, err := objectsInPart(part)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, body := range p.names.NormalizeObjects(found) {
		text, err := yaml.Marshal(body)
		if err != nil {
			return "", err
		}
		object := unstructured.Unstructured{Object: body}
		name := object.GetKind() + " " + qualifiedName(object.GetNamespace(), object.GetName())
		texts = append(texts, "# "+name+"\n"+string(text))
	}
	// An empty list must be visible in the file.
	return cmp.Or(strings.Join(texts, "\n"), fmt.Sprintf("# nothing in the %T", part)), nil
}

// formatRows formats the rows as YAML in their order, followed by the object.
func (p goldenFormatter) formatRows(of goldenPart) (string, error) {
	title, rows, object, err := of.goldenRows()
	if err != nil {
		return "", err
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		// ValueOf(nil) is invalid, and IsZero would panic.
		v := reflect.ValueOf(r.value)
		return !v.IsValid() || v.IsZero()
	})
	all := "# " + title + "\n"
	for _, r := range rows {
		// Each row is encoded separately: a map with all rows would be sorted by key.
		text, err := yaml.Marshal(map[string]any{r.name: r.value})
		if err != nil {
			return "", fmt.Errorf("its %s: %w", r.name, err)
		}
		all += p.names.NormalizeText(string(text))
	}
	after, err := p.formatObjects(object)
	return all + "\n" + after, err
}

var (
	_ goldenPart = Outcome[client.Object]{}
	_ goldenPart = Verdict[client.Object]{}
)

// goldenRows returns the fields of the outcome in the order of the struct. Empty fields are dropped later.
func (o Outcome[T]) goldenRows() (title string, rows []row, object client.Object, err error) {
	var events, subs []string
	for _, e := range o.Events {
		text := e.Type + " " + e.Reason + ": " + e.Message
		if e.About != "" {
			text = "about " + e.About + ": " + text
		}
		events = append(events, text)
	}
	for _, s := range o.Subs {
		text := s.ID + ": " + string(s.State)
		if s.Err != nil {
			text += ": " + s.Err.Error()
		}
		subs = append(subs, text)
	}
	return "outcome", []row{
		{"outcome", o.stateText()}, {"error", errorText(o.Err)}, {"awaited", o.Awaited}, {"patch", o.Patch},
		{"result", o.Result}, {"events", events}, {"subs", subs}, {"children", o.Children}, {"inPlace", o.InPlace},
	}, o.Object, nil
}

// stateText returns the state of the handler after the call.
func (o Outcome[T]) stateText() string {
	switch {
	case !o.Final && o.Called:
		// The remaining delay depends on the duration of the call, so it is rounded.
		return "called again in " + o.Delay.Round(time.Second).String()
	case !o.Called:
		return "not called"
	case o.Err != nil:
		return "failed"
	default:
		return "succeeded"
	}
}

// goldenRows returns the fields of the verdict in the order of the struct. The JSON patch becomes YAML. Empty fields
// are dropped later.
func (v Verdict[T]) goldenRows() (title string, rows []row, object client.Object, err error) {
	var patch any
	if len(v.Patch) > 0 {
		if err := json.Unmarshal(v.Patch, &patch); err != nil {
			return "", nil, nil, fmt.Errorf("reading the patch: %w", err)
		}
	}
	// A bool would be dropped as empty if it is false.
	word := "denied"
	if v.Allowed {
		word = "allowed"
	}
	return "verdict", []row{
		{"verdict", word}, {"error", errorText(v.Err)}, {"code", v.Code}, {"message", v.Message},
		{"warnings", v.Warnings}, {"patch", patch}, {"inPlace", v.InPlace},
	}, v.Object, nil
}

// errorText returns the text of the error, or an empty text for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
