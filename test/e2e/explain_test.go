package e2e_test

import (
	"context"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// explainAddress matches the log line with the address of the explanations.
var explainAddress = regexp.MustCompile(`Serving explanations.* address=(\S+)`)

var _ = Describe("The command explain", func() {
	It("shows why a running program called its handlers or not", func(ctx context.Context) {
		folder := filepath.Join("..", "..", "examples", "11-filtering-handlers")
		program, ns := build(folder), namespace(ctx)
		session := run(program, nil, "-n", ns, "--debug-bind-address", "localhost:0")
		obj := read(filepath.Join(folder, "object.yaml"), ns)
		create(ctx, obj)
		Eventually(now(ctx, obj)).Should(HaveKeyWithValue("metadata", HaveKeyWithValue("annotations", HaveKey(
			"filtering.kopf.dev/last-handled-configuration"))))
		Eventually(session.Err.Contents).Should(MatchRegexp(explainAddress.String()))
		address := string(explainAddress.FindSubmatch(session.Err.Contents())[1])

		By("explaining an object of a running program")
		answer := ask(program, address, "kex", ns+"/"+obj.GetName())
		for _, says := range []string{
			`with-label \(create\), for WithLabel\("somelabel", "somevalue"\)\s+Called at .*: attempt 1 succeeded\.`,
			`with-selector \(create\), .*\s+Not called at .* for a creation: its filter MatchingLabels` +
				`\("somelabel=othervalue"\) does not match: found {"somelabel":"somevalue"}`,
			`event (ADDED|LISTED), version \d+`, `called changed/spec.field: attempt 1 succeeded`,
			`wrote .*kopf-managed, .*last-handled-configuration`,
		} {
			Expect(string(answer.Out.Contents())).To(MatchRegexp(says))
		}

		By("explaining objects that do not exist or are not served")
		for about, says := range map[*unstructured.Unstructured]string{
			otherObject(obj, "KopfExample", "nobody"): "The operator has no record of the object",
			otherObject(obj, "Pod", "nobody"):         `does not serve kind "Pod": it serves KopfExample.kopf.dev`,
		} {
			answer := ask(program, address, about.GetKind(), ns+"/"+about.GetName())
			Expect(string(answer.Out.Contents()) + string(answer.Err.Contents())).To(ContainSubstring(says))
		}

		By("explaining without a running program")
		Eventually(session.Kill()).Should(gexec.Exit())
		answer = ask(program, address, "kex", ns+"/"+obj.GetName())
		Expect(answer).To(gexec.Exit(1))
		Expect(string(answer.Err.Contents())).To(ContainSubstring("no operator answers at " + address))
	})
})

func ask(program, address, kind, name string) *gexec.Session {
	GinkgoHelper()
	session := run(program, nil, "explain", kind, name, "--address", address)
	Eventually(session).Should(gexec.Exit())
	return session
}

func otherObject(than *unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	about := than.DeepCopy()
	about.SetKind(kind)
	about.SetName(name)
	return about
}
