package children

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestImmutableFieldsAreReported(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	invalid := func(all ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", all)
	}
	template := field.Invalid(spec.Child("template"), strings.Repeat("x", 2000), "field is immutable")
	uid := field.Invalid(field.NewPath("metadata", "uid"), "", "field is immutable")
	address := field.Invalid(spec.Child("clusterIPs").Index(0), "1.2.3.4", "may not change once set")
	for name, c := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"fixed": {
			"the error names the immutable fields without their values", invalid(template, address),
			"its spec.template, spec.clusterIPs[0] cannot be changed: declare it as it is, or delete it",
		},
		"also wrong": {"an answer that also has a fixable error stays as it is",
			invalid(template, field.Required(spec, "")), ""},
		"only wrong": {"an answer without an immutable field stays as it is", invalid(field.Required(spec, "")), ""},
		"another":    {"an immutable uid means another object, so the answer stays as it is", invalid(uid), ""},
		"forbidden": {"a Forbidden answer stays as it is",
			apierrors.NewForbidden(schema.GroupResource{}, "j", nil), ""},
		"no answer": {"an error that is not an answer of the API server stays as it is",
			errors.New("field is immutable"), ""},
		"no error":  {"no error stays no error", nil, ""},
		"no causes": {"an Invalid answer without causes stays as it is", invalid(), ""},
		"its refusal": {"a BadRequest answer stays as it is, even with the same text",
			apierrors.NewBadRequest("field is immutable"), ""},
	} {
		if isUIDMismatch(c.err) != (name == "another") {
			t.Errorf("%s: only an immutable uid means another object, so that the child is read again", name)
		}
		got := asImmutableFieldError(c.err)
		switch {
		case c.want == "" && got != nil:
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		case c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want) || len(got.Error()) > 300):
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		case got != nil && !apierrors.IsInvalid(got):
			t.Errorf("%s: the error no longer is the Invalid answer of the API server", name)
		}
	}
}
