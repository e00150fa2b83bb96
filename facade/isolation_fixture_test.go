package kopf_test

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const tampered = "tampered"

// tamperWith changes everything that can be reached from the value, and replaces its parts where it can.
func tamperWith(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[client.Client]() || v.Type() == reflect.TypeFor[client.Reader]() {
			return
		}
		tamperWith(v.Elem())
	case reflect.Pointer:
		tamperWith(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				tamperWith(v.Field(i))
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			tamperWith(v.MapIndex(key))
			v.SetMapIndex(key, other(v.MapIndex(key)))
		}
		if v.Len() > 0 && v.Type().Key().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(tampered).Convert(v.Type().Key()), other(reflect.Zero(v.Type().Elem())))
		}
	case reflect.Slice:
		for i := range v.Len() {
			tamperWith(v.Index(i))
		}
	}
	if v.CanSet() {
		v.Set(other(v))
	}
}

// other returns another value of the same type.
func other(v reflect.Value) reflect.Value {
	changed := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		changed.SetString(tampered)
	case reflect.Int, reflect.Int32, reflect.Int64:
		changed.SetInt(v.Int() + 1)
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[any]() {
			changed.Set(reflect.ValueOf(tampered))
		}
	case reflect.Struct, reflect.Pointer:
		return v
	}
	return changed
}

// tamperingDiffbase is a custom storage that changes its arguments.
type tamperingDiffbase struct {
	*tamperer
	diffbase.Annotations
}

func (s tamperingDiffbase) Build(body map[string]any, extra []diff.Path) (diffbase.Essence, error) {
	essence, err := s.Annotations.Build(body, extra)
	built := copyOf(essence)
	s.tamper(body, extra)
	return built, err
}

func (s tamperingDiffbase) Fetch(body map[string]any) (diffbase.Essence, error) {
	essence, err := s.Annotations.Fetch(body)
	s.tamper(body)
	return essence, err
}

func (s tamperingDiffbase) Store(patch, body map[string]any, essence diffbase.Essence) error {
	err := s.Annotations.Store(patch, body, essence)
	s.tamper(body, essence)
	return err
}

type tamperingProgress struct {
	*tamperer
	progress.Annotations
}

func (s tamperingProgress) Fetch(body map[string]any, id string) (*progress.Record, error) {
	record, err := s.Annotations.Fetch(body, id)
	s.tamper(body)
	return record, err
}

func (s tamperingProgress) Clear(essence map[string]any) map[string]any {
	cleared := copyOf(s.Annotations.Clear(essence))
	s.tamper(essence)
	return cleared
}

func (s tamperingProgress) Store(patch, body map[string]any, id string, record progress.Record) error {
	err := s.Annotations.Store(patch, body, id, record)
	s.tamper(body, record)
	return err
}

func (s tamperingProgress) Purge(patch, body map[string]any, id string) {
	s.Annotations.Purge(patch, body, id)
	s.tamper(body)
}

func copyOf(tree map[string]any) map[string]any {
	own, _ := diff.DeepCopy(tree).(map[string]any)
	return own
}

// note records the input of a function.
func (v *tamperer) note(id string, values ...any) {
	text, err := json.Marshal(values)
	if err != nil {
		v.t.Errorf("%s: %v", id, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, id+" "+string(text))
}

// tamper changes everything that can be reached from the values.
func (v *tamperer) tamper(values ...any) {
	if !v.isActive {
		return
	}
	for _, value := range values {
		tamperWith(reflect.ValueOf(value))
	}
}

// operate runs the operator until stop is called.
func operate(t *testing.T, server http.RoundTripper, op *kopf.Operator, log logr.Logger) (stop func()) {
	t.Helper()
	end := startInManager(t, server, op, func(o *ctrl.Options) { o.Logger = log })
	return func() {
		if err := end(); err != nil {
			t.Errorf("the manager: %v", err)
		}
	}
}

func (v *tamperer) edit(patch string) {
	v.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}}
	object.SetNamespace("default")
	object.SetName("w1")
	if err := v.user.Patch(
		context.Background(), object, client.RawPatch(types.MergePatchType, []byte(patch)),
	); err != nil {
		v.t.Fatal(err)
	}
	v.settle(patch)
}

// settle waits until the operator is idle, and records the state of the object.
func (v *tamperer) settle(after string) {
	time.Sleep(30 * time.Second)
	synctest.Wait()
	object := v.server.Object(widgetResource, "default", "w1")
	annotations, _ := diff.ResolvePath(object, diff.Path{"metadata", "annotations"})
	texts, _ := annotations.(map[string]any)
	for key := range texts {
		if key == "test.example.org/handled-uid" {
			delete(texts, key)
		}
	}
	v.note("object after "+after, object["spec"], object["status"], texts)
}
