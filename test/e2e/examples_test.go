package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// Every example folder with an expected.txt runs as its README describes: the spec creates, updates and deletes the
// object. The waits of each step must succeed, and the operator's log must match the expressions below the step.
var _ = Describe("The examples", func() {
	for _, folder := range examples() {
		story := steps(filepath.Join(folder, "expected.txt"))
		It(filepath.Base(folder)+" does what it shows", func(ctx context.Context) { play(ctx, folder, story) })
	}
})

// examples returns the example folders that contain an expected.txt.
func examples() []string {
	folders, err := filepath.Glob(filepath.Join("..", "..", "examples", "*", "expected.txt"))
	if err != nil || len(folders) == 0 {
		panic("there are no examples: this suite must be run in its folder")
	}
	for i, expected := range folders {
		folders[i] = filepath.Dir(expected)
	}
	return append(folders, filepath.Join("..", "..", "facade", "rules", "example"))
}

// step is one action on the object of an example or on other objects, with the log lines that the operator must write.
type step struct {
	verb string
	// Or the file with the other objects, or the object with its patch, or the flags of the second operator.
	argument string
	waits    []string
	lines    []string
}

func steps(expected string) []step {
	content, err := os.ReadFile(expected)
	if err != nil {
		panic(err)
	}
	var all []step
	for line := range strings.Lines(strings.TrimSpace(string(content))) {
		line = strings.TrimSpace(line)
		switch verb, patch, _ := strings.Cut(line, " "); {
		case line == "stop second":
			all = append(all, step{verb: line})
		case verb == "second" && strings.HasPrefix(patch, "-"), verb == "status" && strings.Contains(patch, "/"):
			all = append(all, step{verb: verb, argument: patch})
		case verb == "create" || verb == "delete" || verb == "restart" || verb == "stop" ||
			verb == "update" && strings.HasPrefix(patch, "{") ||
			(verb == "apply" || verb == "remove" || verb == "refuse") && strings.HasSuffix(patch, ".yaml"),
			verb == "refuse" && (strings.HasPrefix(patch, "{") || patch == "delete"):
			all = append(all, step{verb: verb, argument: patch})
		case verb == "wait" && strings.Contains(patch, "="):
			all[len(all)-1].waits = append(all[len(all)-1].waits, patch)
		default:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

func play(ctx context.Context, folder string, steps []step) {
	GinkgoHelper()
	if crds := filepath.Join(folder, "crd.yaml"); exists(crds) {
		install(crds)
	}
	r := exampleRun{folder: folder, namespace: namespace(ctx), beforeExit: func() {}}
	r.args = []string{"-n", r.namespace}
	if deployment := filepath.Join(folder, "deploy"); exists(deployment) {
		r.env = deploy(ctx, deployment)
	}
	r.play(ctx, steps)
}

// exampleRun is one run of the program of an example, with the environment and the flags of a user.
type exampleRun struct {
	folder, namespace string
	env, args         []string
	beforeExit        func() // called before each regular exit
}

func (r exampleRun) play(ctx context.Context, steps []step) {
	GinkgoHelper()
	folder, ns, env := r.folder, r.namespace, r.env
	program := build(folder)
	session, second := run(program, env, r.args...), (*gexec.Session)(nil)
	exit := func() {
		r.beforeExit()
		Eventually(session.Terminate()).Should(gexec.Exit(0))
	}
	obj := read(filepath.Join(folder, "object.yaml"), ns)
	for _, s := range steps {
		By(s.verb + " " + s.argument)
		from, before, secondFrom := len(session.Err.Contents()), len(apiWarnings.list()), 0
		if second != nil {
			secondFrom = len(second.Err.Contents())
		}
		switch s.verb {
		case "second":
			second = run(program, env, append([]string{"-n", ns}, strings.Fields(s.argument)...)...)
		case "stop second":
			Eventually(second.Terminate()).Should(gexec.Exit(0))
		case "create":
			create(ctx, obj)
		case "update":
			merge(ctx, obj, s.argument)
		case "restart":
			exit()
			session, from = run(program, env, r.args...), 0
		case "stop":
			exit()
		case "delete":
			remove(ctx, obj)
			Eventually(now(ctx, obj)).Should(BeNil())
		case "apply", "remove":
			applyOrRemoveFile(ctx, s.verb, filepath.Join(folder, s.argument), ns)
		case "status":
			object, patch, _ := strings.Cut(s.argument, " ")
			kubectl(ctx, "patch", object, "-n", ns, "--subresource=status", "--type=merge", "-p", patch)
		case "refuse":
			requireRefusal(ctx, folder, ns, obj, s)
			continue
		}
		for _, what := range s.waits {
			awaitCurrent(ctx, obj, what)
		}
		s.requireLines(func(line string) string {
			switch {
			case strings.HasPrefix(line, "second: "):
				return string(second.Err.Contents()[secondFrom:])
			case strings.HasPrefix(line, "Warning: "):
				return strings.Join(apiWarnings.list()[before:], "\n")
			default:
				return string(session.Err.Contents()[from:])
			}
		})
	}
	exit()
}

// requireLines waits until the matching log contains each line.
func (s step) requireLines(log func(line string) string) {
	GinkgoHelper()
	for _, line := range s.lines {
		Eventually(log).WithArguments(line).Should(MatchRegexp(strings.TrimPrefix(line, "second: ")), "after: "+s.verb)
	}
}

// deploy applies the generated manifests of an example, and returns credentials of the operator's service account.
func deploy(ctx context.Context, folder string) (env []string) {
	GinkgoHelper()
	kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", folder)
	for _, object := range documents(string(contentOf(filepath.Join(folder, "rbac.yaml")))) {
		if object.GetKind() == "ServiceAccount" {
			account := "system:serviceaccount:" + object.GetNamespace() + ":" + object.GetName()
			return []string{"KUBECONFIG=" + userOf(ctx, account, nil)}
		}
	}
	Fail("there is no service account")
	return nil
}

func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	program := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.CommandContext(ctx, program, append(args, "--kubeconfig", kubeconfigPath())...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// applyOrRemoveFile applies or removes all objects of a file. Namespaced objects without a namespace are in that of the
// spec.
func applyOrRemoveFile(ctx context.Context, verb, file, ns string) {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		obj := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &obj.Object)).To(Succeed())
		namespaced, err := api.IsObjectNamespaced(obj)
		Expect(err).NotTo(HaveOccurred())
		if namespaced && obj.GetNamespace() == "" {
			obj.SetNamespace(ns)
		}
		if verb == "remove" {
			remove(ctx, obj)
			continue
		}
		applied := client.ApplyConfigurationFromUnstructured(obj)
		Expect(api.Apply(ctx, applied, client.FieldOwner("e2e"), client.ForceOwnership)).To(Succeed())
	}
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func install(crds string) {
	GinkgoHelper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())
}

// run starts a program with its own credentials. It is killed at the end of the spec at the latest.
func run(program string, env []string, args ...string) *gexec.Session {
	GinkgoHelper()
	session, err := startProcess(program, env, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

func startProcess(program string, env []string, args ...string) (*gexec.Session, error) {
	command := exec.Command(program, args...)
	command.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfigPath()), env...)
	return gexec.Start(command, GinkgoWriter, GinkgoWriter)
}

func read(file, ns string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(content, &obj.Object)).To(Succeed())
	obj.SetNamespace(ns)
	return obj
}
