package memapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json"
)

// checkUnknownFields checks an object of a built-in kind against its Go type, if the request warns about or refuses
// unknown fields. Other requests skip the check, because decoding takes time.
func (t target) checkUnknownFields(data []byte) error {
	gvk := t.groupVersion().WithKind(t.Kind)
	asked := t.fieldValidation == metav1.FieldValidationStrict || t.fieldValidation == metav1.FieldValidationWarn
	// The schema of a custom resource is checked elsewhere.
	if !asked || t.schema != nil || !scheme.Scheme.Recognizes(gvk) {
		return nil
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return internalError(err)
	}
	problems, err := json.UnmarshalStrict(data, typed)
	// A type error is a bad request, whatever the handling of unknown fields.
	if err != nil {
		return t.unreadableError(err)
	}
	var texts []string
	for _, one := range problems {
		texts = append(texts, one.Error())
	}
	return t.reportUnknown(texts)
}
