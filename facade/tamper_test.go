package facade_test

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

const tampered = "tampered"

// tamperWith changes what is behind the value; its places are replaced where they can be.
func tamperWith(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[client.Client]() {
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

// other is another value of the same type.
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

// tamperingDiffbase are storages of the user's own.
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
	own, _ := diff.Copy(tree).(map[string]any)
	return own
}
