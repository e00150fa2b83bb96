package e2e_test

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

// specialCharacters contains characters that CEL, regular expressions and format strings must escape.
const specialCharacters = "\"'\\n`${x} %s %d\n\r\t\x00\x7fäöü€😀\ufffd\u2028^.*$"

// conditionsOperator returns an operator that denies every object that its filters select.
func conditionsOperator(place, address string) *kopf.Operator {
	op := kopf.New("conditions.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: place + ".example.org", URL: "https://" + address, Secret: place + "/certificate",
	}})
	deny := func(_ context.Context, a *widgetAdmission) error { return kopf.Deny(http.StatusLocked, "%s", a.ID) }
	widgets := kopf.For(op, &v1.Widget{}).WithLabel(namespaceLabel, place)
	widgets.WithAnnotation("Example.org/a.b-c_d", specialCharacters).Validate("nasty", deny)
	widgets.MatchingAnnotations("a,!b,c in (x,y),d notin (x,y),e!=z,f>4,g<4").Validate("selector", deny)
	widgets.Validate("size", deny, kopf.InField("spec.size"), kopf.Value(7))
	widgets.Validate("tags", deny, kopf.InField("spec.tags"), kopf.Value([]string{"x", specialCharacters}))
	many := widgets
	for i := range 70 {
		many = many.WithAnnotation(fmt.Sprintf("many-%d", i), kopf.Present)
	}
	many.Validate("many", deny, kopf.Subresource("*"))
	return op
}

var _ = Describe("Operators with filters that the API server checks", func() {
	It("get no reviews of other objects, and all entries are valid for any filter text", func(
		ctx SpecContext,
	) {
		place, address := namespace(ctx), freeAddress()
		endpoint := newCountedServer(address)
		serve(conditionsOperator(place, address), endpoint)
		number := 0
		attempt := func(annotations map[string]string, spec map[string]any) int32 {
			number++
			obj := widget(place, fmt.Sprintf("w%d", number), spec)
			obj.SetLabels(map[string]string{namespaceLabel: place})
			obj.SetAnnotations(annotations)
			code, _ := denialOf(api.Create(ctx, obj))
			return code
		}
		many := map[string]string{}
		for i := range 70 {
			many[fmt.Sprintf("many-%d", i)] = ""
		}
		seven := map[string]any{"size": int64(7)}
		Eventually(func() int32 { return attempt(nil, seven) }).WithContext(ctx).Should(BeEquivalentTo(423))
		fits := map[string]string{"a": "", "c": "y", "d": "z", "f": "5", "g": "-5"}
		Expect(attempt(map[string]string{"Example.org/a.b-c_d": specialCharacters}, nil)).To(BeEquivalentTo(423))
		Expect(attempt(fits, nil)).To(BeEquivalentTo(423))
		Expect(attempt(nil, map[string]any{"tags": []any{"x", specialCharacters}})).To(BeEquivalentTo(423))
		Expect(attempt(many, nil)).To(BeEquivalentTo(423))

		By("counting the requests")
		asked := func() (all []int) {
			for _, id := range []string{"nasty", "selector", "size/spec.size", "tags/spec.tags", "many"} {
				all = append(all, endpoint.of("/conditions.example.org/validate/"+id))
			}
			return all
		}
		before := asked()
		Expect(before).To(HaveEach(BeNumerically(">", 0)))
		fits["b"] = ""
		other := map[string]string{"Example.org/a.b-c_d": "other"}
		Expect(attempt(other, map[string]any{"size": int64(8)})).To(BeZero())
		Expect(attempt(fits, map[string]any{"tags": []any{specialCharacters}})).To(BeZero())
		Expect(asked()).To(Equal(before))
	}, SpecTimeout(waitTimeout))
})
