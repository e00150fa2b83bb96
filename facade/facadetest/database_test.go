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

// Database is an example kind of a user's project. A scheme contains it only if a test adds it.
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

// DeepCopyObject does the same as the generated method of controller-gen.
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

// orders returns a valid database, with the given changes.
func orders(change ...func(*Database)) *Database {
	db := &Database{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: DatabaseSpec{Owner: "ann", Size: 3},
	}
	for _, one := range change {
		one(db)
	}
	return db
}

// panicOf returns the text of the call's panic.
func panicOf(t *testing.T, call func()) (text string) {
	t.Helper()
	defer func() {
		value := recover()
		if value == nil {
			t.Error("the call must panic")
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
			t.Errorf("want the text %q in: %s", one, text)
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
