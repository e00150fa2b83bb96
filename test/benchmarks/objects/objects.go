package objects

import (
	"bytes"
	_ "embed" // for the texts
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Object is a measured object, without managed fields.
type Object struct {
	// Name is its part in the names of benchmarks.
	Name string
	// Text is its JSON, as the API server sends it.
	Text []byte

	changedText []byte // the same after a change of one string, deep in the specification
}

var (
	//go:embed testdata/database.json
	database []byte
	//go:embed testdata/pod.json
	pod []byte

	// CustomResource is a Database of the group example.org, of 2 KiB.
	CustomResource = newObject("CustomResource", database, "200Gi", "400Gi")
	// Pod is of two containers with 15 environment variables each, of 2.3 KB.
	Pod = newObject("Pod", pod, "production", "acceptance")

	// All are these two.
	All = []Object{CustomResource, Pod}
)

// newObject takes the text without what makes it readable.
func newObject(name string, readable []byte, value, another string) Object {
	var text bytes.Buffer
	if err := json.Compact(&text, readable); err != nil {
		panic(fmt.Errorf("the embedded object %s: %w", name, err)) // looked at by a test
	}
	return Object{name, text.Bytes(), bytes.Replace(text.Bytes(), []byte(value), []byte(another), 1)}
}

// Tree decodes the object as a client does. Each call gives a tree of its own, so that nothing is equal just for being
// the same.
func (o Object) Tree() map[string]any { return decodeTree(o.Name, o.Text) }

// Changed returns Tree with one changed string.
func (o Object) Changed() map[string]any { return decodeTree(o.Name, o.changedText) }

func decodeTree(name string, text []byte) (tree map[string]any) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &tree); err != nil {
		panic(fmt.Errorf("decoding the object %s: %w", name, err)) // looked at by a test
	}
	return tree
}
