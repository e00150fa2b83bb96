package children

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFixedFieldsAreTold(t *testing.T) {
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
			"the fields are named, and not their values", invalid(template, address),
			"its spec.template, spec.clusterIPs[0] cannot be changed: declare it as it is, or delete it",
		},
		"also wrong":  {"what can be mended must be told", invalid(template, field.Required(spec, "")), ""},
		"only wrong":  {"as the API server says it", invalid(field.Required(spec, "")), ""},
		"another":     {"it is not the object", invalid(uid), ""},
		"forbidden":   {"there are no fields in it", apierrors.NewForbidden(schema.GroupResource{}, "j", nil), ""},
		"no answer":   {"of the API server", errors.New("field is immutable"), ""},
		"no error":    {"there is nothing to tell", nil, ""},
		"no causes":   {"as above", invalid(), ""},
		"its refusal": {"which may say so in a text alone", apierrors.NewBadRequest("field is immutable"), ""},
	} {
		got := fixedIn(c.err)
		switch {
		case c.want == "" && got != nil:
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		case c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want) || len(got.Error()) > 300):
			t.Errorf("%s: %s: got %v", name, c.reason, got)
		case got != nil && !apierrors.IsInvalid(got):
			t.Errorf("%s: the answer itself is lost", name)
		}
	}
}
