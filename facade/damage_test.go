package facade_test

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const damage = "damaged"

// rage changes what is behind the value; its places are replaced where they can be.
func rage(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[client.Client]() {
			return
		}
		rage(v.Elem())
	case reflect.Pointer:
		rage(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				rage(v.Field(i))
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			rage(v.MapIndex(key))
			v.SetMapIndex(key, other(v.MapIndex(key)))
		}
		if v.Len() > 0 && v.Type().Key().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf(damage).Convert(v.Type().Key()), other(reflect.Zero(v.Type().Elem())))
		}
	case reflect.Slice:
		for i := range v.Len() {
			rage(v.Index(i))
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
		changed.SetString(damage)
	case reflect.Int, reflect.Int32, reflect.Int64:
		changed.SetInt(v.Int() + 1)
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[any]() {
			changed.Set(reflect.ValueOf(damage))
		}
	case reflect.Struct, reflect.Pointer:
		return v
	}
	return changed
}
