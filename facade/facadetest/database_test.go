package facadetest_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// Database is a kind of somebody's project; no scheme knows it, unless a test adds it.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec   `json:"spec,omitempty"`
	Status DatabaseStatus `json:"status,omitempty"`
}

type DatabaseSpec struct {
	Owner string   `json:"owner,omitempty"`
	Size  int      `json:"size,omitempty"`
	Users []string `json:"users,omitempty"`
}

type DatabaseStatus struct {
	Host string `json:"host,omitempty"`
}

// DeepCopyObject is what controller-gen would make.
func (d *Database) DeepCopyObject() runtime.Object {
	copied := *d
	copied.ObjectMeta = *d.ObjectMeta.DeepCopy()
	copied.Spec.Users = append([]string(nil), d.Spec.Users...)
	return &copied
}

type (
	DatabaseChange    = kopf.Change[*Database]
	DatabaseRun       = kopf.Task[*Database]
	DatabaseEvent     = kopf.WatchEvent[*Database]
	DatabaseAdmission = kopf.Admission[*Database]
)

// orders is a database as a test writes it.
func orders(change ...func(*Database)) *Database {
	db := &Database{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: DatabaseSpec{Owner: "ann", Size: 3},
	}
	for _, one := range change {
		one(db)
	}
	return db
}

// panicOf is the text that the call panics with.
func panicOf(t *testing.T, call func()) (text string) {
	t.Helper()
	defer func() {
		value := recover()
		if value == nil {
			t.Error("it does not panic")
		}
		text, _ = value.(string)
	}()
	call()
	return text
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, one := range wanted {
		if !strings.Contains(text, one) {
			t.Errorf("want %q in: %s", one, text)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var unstructuredObject = unstructured.Unstructured{Object: map[string]any{
	"apiVersion": "example.org/v1", "kind": "Database", "metadata": map[string]any{"name": "orders"},
}}

type (
	rawObject = unstructured.Unstructured
	object    = client.Object
)
