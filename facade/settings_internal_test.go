package kopf

import (
	"reflect"
	"testing"
)

// TestSettingsClone shows that the operator shares no slice of the settings with the caller of New.
func TestSettingsClone(t *testing.T) {
	var given Settings
	var slices []string
	eachSlice(reflect.ValueOf(&given).Elem(), "", func(name string, field reflect.Value) {
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		slices = append(slices, name)
	})
	cloned := given.deepCopySlices()
	shared := map[uintptr]bool{}
	eachSlice(reflect.ValueOf(&given).Elem(), "", func(_ string, field reflect.Value) { shared[field.Pointer()] = true })
	eachSlice(reflect.ValueOf(&cloned).Elem(), "", func(name string, field reflect.Value) {
		if shared[field.Pointer()] {
			t.Errorf("the clone shares the slice %s with the given settings", name)
		}
	})
	if len(slices) == 0 {
		t.Error("Settings must have fields that are slices")
	}
}

// eachSlice calls the function for each field that is a slice, also in sections.
func eachSlice(section reflect.Value, prefix string, visit func(name string, field reflect.Value)) {
	for i := range section.NumField() {
		field, name := section.Field(i), prefix+section.Type().Field(i).Name
		switch field.Kind() {
		case reflect.Slice:
			visit(name, field)
		case reflect.Struct:
			eachSlice(field, name+".", visit)
		}
	}
}
