package e2e_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/diffbase"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
	v1 "github.com/kopf-runtime/kopf-runtime/test/e2e/api/v1"
)

var _ = Describe("The storages of an operator", func() {
	It("are replaced by others without handling objects again", func(ctx context.Context) {
		const name = "moving.example.org"
		ns, seen := namespace(ctx), &calls{}
		moving := func(persistence kopf.PersistenceSettings) *runningOperator {
			op := kopf.New(name, kopf.Settings{Namespaces: []string{ns}, Persistence: persistence})
			widgets := kopf.For(op, &v1.Widget{})
			widgets.OnCreate("quick", func(_ context.Context, c *kopf.Change[*v1.Widget]) error {
				seen.add("quick %s", c.Object.Name)
				return nil
			})
			widgets.OnCreate("patient", func(_ context.Context, c *kopf.Change[*v1.Widget]) error {
				seen.add("patient %s", c.Object.Name)
				if c.Object.Name == "unfinished" {
					return kopf.Temporary(fmt.Errorf("not yet"), time.Hour)
				}
				return nil
			})
			widgets.OnUpdate("u", func(_ context.Context, c *kopf.Change[*v1.Widget]) error {
				seen.add("update %s %v", c.Object.Name, c.Diff)
				return nil
			})
			return start(op)
		}
		first := moving(kopf.PersistenceSettings{})
		done, unfinished := widget(ns, "done", map[string]any{"size": int64(1)}), widget(
			ns, "unfinished", map[string]any{"size": int64(1)},
		)
		create(ctx, done)
		create(ctx, unfinished)
		Eventually(annotation(ctx, done, name+lastHandledSuffix)).ShouldNot(BeNil())
		Eventually(annotation(ctx, unfinished, name+"/patient")).ShouldNot(BeNil())
		before := seen.list()
		Expect(before).To(ConsistOf("quick done", "patient done", "quick unfinished", "patient unfinished"))
		first.stop()

		second := moving(kopf.PersistenceSettings{
			DiffbaseStorage: diffbase.Multi{
				diffbase.Status{Name: "mover"}, diffbase.Annotations{Prefix: name, WithoutV1: true},
			},
			ProgressStorage: progress.Multi{
				progress.Status{Name: "mover"}, progress.Annotations{Prefix: name, WithoutV1: true},
			},
		})
		Eventually(field(ctx, done, "status", "mover", "last-handled-configuration")).ShouldNot(BeNil())
		Eventually(field(ctx, unfinished, "status", "mover", "progress", "patient", "retries")).Should(Equal(int64(1)))
		Expect(second.requests.of("done")).To(Equal([]string{"PATCH status"}), "only the status is written")
		second.stop()
		merge(ctx, done, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, name+lastHandledSuffix))

		moving(kopf.PersistenceSettings{
			DiffbaseStorage: diffbase.Status{Name: "mover"}, ProgressStorage: progress.Status{Name: "mover"},
		})
		merge(ctx, done, `{"spec":{"size":2}}`)
		Eventually(seen.list).Should(HaveLen(len(before) + 1))
		Consistently(seen.list, "300ms").Should(Equal(append(before, "update done [change spec.size: 1 -> 2]")))
	})

	It("are reported if the API server drops their field", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("dropped.example.org", kopf.Settings{
			Namespaces: []string{ns}, Persistence: kopf.PersistenceSettings{DiffbaseStorage: diffbase.Status{}},
		})
		kopf.For(
			op, &corev1.ConfigMap{},
		).MatchingLabels("dropped").OnCreate("c", func(context.Context, *kopf.Change[*corev1.ConfigMap]) error {
			seen.add("create")
			return nil
		})
		running := start(op)
		obj := raw("v1", "ConfigMap", ns, "dropped", nil)
		delete(obj.Object, "spec")
		obj.SetLabels(map[string]string{"dropped": "yes"})
		create(ctx, obj)
		Eventually(running.logs).Should(gbytes.Say("did not keep the stored progress or configuration"))
		Consistently(seen.list, "2s").Should(Equal([]string{"create"}), "the handler is not called in a loop")
	})
})

var _ = Describe("The stored configuration", func() {
	It("contains only digests for a Secret", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("secrets.example.org", kopf.Settings{
			Namespaces:  []string{ns},
			Persistence: kopf.PersistenceSettings{DigestKey: []byte("key of the operator")},
		})
		secrets := kopf.For(op, &corev1.Secret{}).MatchingLabels("handled")
		note := func(_ context.Context, c *kopf.Change[*corev1.Secret]) error {
			seen.add("%s: %q, was %q, %v", c.Reason, c.Object.Data["password"], c.Old.Data["password"], c.Diff)
			return nil
		}
		secrets.OnCreate("c", note)
		secrets.OnCreate("slow", func(_ context.Context, c *kopf.Change[*corev1.Secret]) error {
			if c.Retry == 0 {
				return kopf.Temporary(fmt.Errorf("not yet"), 300*time.Millisecond)
			}
			return nil
		})
		secrets.OnUpdate("u", note)
		running := start(op)
		obj := raw("v1", "Secret", ns, "secret", nil)
		delete(obj.Object, "spec")
		obj.SetLabels(map[string]string{"handled": "yes"})
		first, second := base64.StdEncoding.EncodeToString([]byte("hunter2")), base64.StdEncoding.EncodeToString(
			[]byte("swordfish"),
		)
		obj.Object["data"] = map[string]any{"password": first}
		create(ctx, obj)
		remembered := func() string {
			all, err := field(ctx, obj, "metadata", "annotations")()
			Expect(err).NotTo(HaveOccurred())
			text, err := json.Marshal(all)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
		Eventually(annotation(ctx, obj, "secrets.example.org/handling-configuration")).ShouldNot(BeNil())
		Expect(remembered()).NotTo(Or(ContainSubstring(first), ContainSubstring("hunter2")))
		Eventually(annotation(ctx, obj,
			"secrets.example.org"+lastHandledSuffix)).Should(ContainSubstring(`"$digests":[[]]`))
		merge(ctx, obj, `{"data":{"password":"`+second+`"}}`)
		Eventually(seen.list).Should(
			HaveExactElements(
				HavePrefix(`create: "hunter2", was "", [add:`), `update: "swordfish", was "", [change data.password]`,
			),
		)
		Eventually(annotation(ctx, obj, "secrets.example.org/handling-configuration")).Should(BeNil())
		for _, secret := range []string{"hunter2", "swordfish", first, second} {
			Expect(remembered()).NotTo(ContainSubstring(secret))
			Expect(string(running.logs.Contents())).NotTo(ContainSubstring(secret))
			Expect(strings.Join(seen.list()[:1], "")).NotTo(ContainSubstring(first))
		}
		running.stop()
		start(op2(ns, seen))
		merge(ctx, obj, `{"metadata":{"labels":{"again":"yes"}}}`)
		Eventually(seen.list).Should(
			HaveExactElements(HavePrefix("create"), HavePrefix("update"), "again [add metadata.labels.again]"),
		)
	})

	It("contains only digests of the values of a ConfigMap of 150 KiB", func(ctx context.Context) {
		ns, seen := namespace(ctx), &calls{}
		op := kopf.New("large.example.org", settingsFor(ns))
		maps := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("large")
		maps.OnCreate("c", func(
			context.Context, *kopf.Change[*corev1.ConfigMap],
		) error {
			seen.add("create")
			return nil
		})
		maps.OnUpdate("u", func(_ context.Context, c *kopf.Change[*corev1.ConfigMap]) error {
			seen.add("update %v, %d bytes of %d known", c.Diff, len(c.Old.Data["large"]), len(c.Object.Data["large"]))
			return nil
		})
		start(op)
		obj := raw("v1", "ConfigMap", ns, "large", nil)
		delete(obj.Object, "spec")
		obj.SetLabels(map[string]string{"large": "yes"})
		obj.Object["data"] = map[string]any{"large": strings.Repeat("x", 150*1024), "small": "one"}
		create(ctx, obj)
		Eventually(
			annotation(ctx, obj, "large.example.org"+lastHandledSuffix),
		).Should(And(ContainSubstring(`"$digests":[[]]`), HaveLen(len(
			`{"data":{"large":"0123456789abcdef","small":"0123456789abcdef"},`+
				`"metadata":{"labels":{"large":"0123456789abcdef"}},"$digests":[[]]}`)+1)))
		merge(ctx, obj, `{"data":{"small":"two"}}`)
		Eventually(seen.list).Should(
			Equal([]string{"create", "update [change data.small], 153600 bytes of 153600 known"}),
		)
		merge(ctx, obj, `{"data":{"large":"y"}}`)
		Eventually(seen.list).Should(
			HaveExactElements("create", HavePrefix("update"), "update [change data.large], 0 bytes of 1 known"),
		)
		Eventually(annotation(ctx, obj, "large.example.org"+lastHandledSuffix)).Should(
			Equal(`{"data":{"large":"y","small":"two"},"metadata":{"labels":{"large":"yes"}}}` + "\n"),
		)
	})
})

// op2 returns the operator of secrets with a new digest key and the former one.
func op2(ns string, seen *calls) *kopf.Operator {
	op := kopf.New("secrets.example.org", kopf.Settings{
		Namespaces: []string{ns},
		Persistence: kopf.PersistenceSettings{
			DigestKey: []byte("new"), FormerDigestKeys: [][]byte{[]byte("key of the operator")},
		},
	})
	kopf.For(
		op, &corev1.Secret{},
	).MatchingLabels("handled").OnUpdate("u", func(_ context.Context, c *kopf.Change[*corev1.Secret]) error {
		seen.add("again %v", c.Diff)
		return nil
	})
	return op
}
