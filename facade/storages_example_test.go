package kopf_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/internal/keys"
	"github.com/kopf-runtime/kopf-runtime/storage"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// Zipped stores the last-handled configuration in its own annotation, compressed. The embedded storage defines the
// essence, and leaves out its own annotations.
type Zipped struct{ diffbase.Annotations }

// Fetch implements diffbase.Storage.
func (z Zipped) Fetch(body map[string]any) (diffbase.Essence, error) {
	annotations, err := storage.AnnotationsOf(body)
	if err != nil || annotations[z.key()] == nil {
		return nil, err
	}
	text, _ := annotations[z.key()].(string)
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewBufferString(text)))
	if err != nil {
		return nil, &diffbase.MalformedError{Where: "annotation " + z.key(), Err: err}
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(reader); err != nil {
		return nil, &diffbase.MalformedError{Where: "annotation " + z.key(), Err: err}
	}
	return storage.ParseObject(raw.String()) // with integers as in Kubernetes objects
}

// Store implements diffbase.Storage. The marker of the prefix shows other operators that the annotations belong to an
// operator.
func (z Zipped) Store(patch, body map[string]any, essence diffbase.Essence) error {
	raw, err := json.Marshal(essence)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(raw); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(packed.Bytes())
	if err := storage.SetAnnotations(patch, []string{z.key()}, text); err != nil {
		return err
	}
	return storage.SetAnnotationOnce(patch, body, keys.MarkerKey(z.Prefix), keys.ManagedValue)
}

func (z Zipped) key() string { return z.Prefix + "/handled.gz" }

// A custom storage implements diffbase.Storage or progress.Storage. Most of them embed an existing one.
func ExamplePersistenceSettings() {
	zipped := Zipped{diffbase.Annotations{Prefix: "databases.example.org", WithoutV1: true}}
	kopf.New("databases.example.org", kopf.Settings{
		Persistence: kopf.PersistenceSettings{DiffbaseStorage: zipped},
	})

	patch := map[string]any{}
	object := map[string]any{"spec": map[string]any{"size": int64(1)}}
	essence, _ := zipped.Build(object, nil)
	_ = zipped.Store(patch, object, essence)
	fetched, _ := zipped.Fetch(patch)
	fmt.Println(fetched)
	// Output: map[spec:map[size:1]]
}

// To move from annotations to the status, an operator runs with both for a while, the new one first.
func ExamplePersistenceSettings_moving() {
	const name = "databases.example.org"
	both := diffbase.Multi{
		diffbase.Status{Name: "databases"}, diffbase.Annotations{Prefix: name, WithoutV1: true},
	}
	kopf.New(name, kopf.Settings{Persistence: kopf.PersistenceSettings{
		DiffbaseStorage: both,
		ProgressStorage: progress.Multi{
			progress.Status{Name: "databases"}, progress.Annotations{Prefix: name, WithoutV1: true},
		},
	}})

	patch := map[string]any{}
	essence := diffbase.Essence{"spec": map[string]any{"size": int64(1)}}
	err := both.Store(patch, map[string]any{}, essence)
	fmt.Println(err, len(patch["status"].(map[string]any)) > 0, len(patch["metadata"].(map[string]any)) > 0)
	// Output: <nil> true true
}
