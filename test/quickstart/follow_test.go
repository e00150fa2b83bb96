package quickstart_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

const (
	// tries is how often a command is repeated whose output must become that of a page.
	tries = 50
	// quickBuild links faster than go build alone. The path of the program follows.
	quickBuild = "go build -ldflags='-s -w' -o "
)

// newObject creates the object of the first operator, instead of one that the operator of an earlier page has handled.
// That operator has ended, so it does not repair its webhooks.
const newObject = "kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations --all\n" +
	"kubectl patch website home --type merge -p '{\"metadata\":{\"finalizers\":null}}' || true\n" +
	"kubectl delete website home --ignore-not-found\nkubectl apply -f object.yaml"

// exampleImport is the path of the first operator in the repository.
const exampleImport = module + "/examples/getting-started"

// followFirst follows the first page in an empty folder. It leaves the cluster running on which the other pages work.
func (r *reader) followFirst(ctx context.Context) {
	r.t.Helper()
	const example = "examples/getting-started"
	document := readFile(r.t, firstPage)
	shown := map[string]string{}
	for _, block := range documents.Blocks(document) {
		switch {
		case strings.HasPrefix(block.File, example+"/") && path.Ext(block.File) != ".txt":
			shown[strings.TrimPrefix(block.File, example+"/")] = block.Text
		case block.IsCommands():
			for name, content := range shown { // the reader has saved the files so far
				r.write(name, content)
			}
			r.runBlock(ctx, block.Text, "")
		}
	}
	for _, name := range []string{"crd.yaml", "api/v1/zz_generated.deepcopy.go"} {
		got, err := os.ReadFile(filepath.Join(r.folder, filepath.FromSlash(name)))
		if err != nil || string(got) != readFile(r.t, example+"/"+name) {
			r.t.Errorf("controller-gen has written another %s than that of %s: %v\n%s", name, example, err, got)
		}
	}
	r.play(ctx, r.operator(), readFile(r.t, example+"/session.txt"))
	r.stop(func(p *process) bool { return p.isOperator })
	r.run(ctx, quickBuild+"\"$GOBIN/my-operator\" .\ncp \"$GOBIN/my-operator\" \"$GOBIN/operator\"")
}

// follow runs the commands of a page.
func (r *reader) follow(ctx context.Context, document string, p page) {
	r.t.Helper()
	r.run(ctx, newObject)
	if p.folder != "" {
		r.writeManifests(p.folder)
	}
	if p.program != "" {
		r.install(ctx, p.program)
	}
	printed := r.runBlock(ctx, p.setupCommands, p.startedText)
	if p.setupLogText != "" {
		r.operator().await(p.setupLogText)
	}
	var last string
	for _, block := range documents.Blocks(document) {
		switch {
		case block.IsCommands() && block.Needs() == "":
			if p.stopText != "" && strings.Contains(block.Text, p.stopText) {
				r.stop(func(p *process) bool { return p.isOperator })
			}
			for text, commands := range p.commandsBefore {
				if strings.Contains(block.Text, text) {
					printed += r.runBlock(ctx, commands, p.startedText)
				}
			}
			last = block.Text
			printed += r.runBlock(ctx, last, p.startedText)
		case p.showsOutput && block.Language == "" && block.File == "":
			// The operator handles the events of its own writes a moment later.
			for range tries {
				if missingLine(block.Text, printed) == "" {
					break
				}
				printed = r.runBlock(ctx, last, p.startedText)
			}
			r.requireLines(block.Text, printed)
		}
	}
	for _, text := range p.wantOutput {
		if !strings.Contains(printed, text) {
			r.t.Errorf("the commands must print %q, got:\n%s", text, printed)
		}
	}
	for _, text := range p.wantLog {
		r.operator().await(text)
	}
	if p.check != nil {
		p.check(ctx, r)
	}
}

// requireLines compares lines of a page, except those with an ellipsis alone, with the output of commands.
func (r *reader) requireLines(lines, printed string) {
	r.t.Helper()
	if line := missingLine(lines, printed); line != "" {
		r.t.Errorf("the page shows the line %q, got:\n%s", line, printed)
	}
}

// missingLine returns the first of the lines that the output does not have.
func missingLine(lines, printed string) string {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(withoutTime(line))
		if line != "…" && !strings.Contains(withoutTime(printed), line) {
			return line
		}
	}
	return ""
}

// install builds another program as operator and my-operator, in a folder before those of PATH.
func (r *reader) install(ctx context.Context, program string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.folder, "program")); err != nil {
		r.t.Fatal(err)
	}
	r.writeProgram(program)
	bin := r.t.TempDir()
	r.run(ctx, quickBuild+"'"+bin+"/my-operator' ./program\ncp '"+bin+"/my-operator' '"+bin+"/operator'\n"+
		"export PATH='"+bin+"':\"$PATH\"")
}

// writeProgram writes the files of a program to the folder program.
func (r *reader) writeProgram(from string) {
	r.t.Helper()
	adapt := func(text string) string {
		return r.addresses.Replace(strings.ReplaceAll(text, exampleImport, "example.org/websites"))
	}
	if path.Ext(from) == ".md" {
		for _, snippet := range documents.Snippets(readFile(r.t, from)) {
			if snippet.IsProgram() {
				r.write("program/main.go", adapt(snippet.Text))
				return
			}
		}
		r.t.Fatalf("%s does not have a program", from)
	}
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(from), "*.go"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("%s has no program: %v", from, err)
	}
	for _, file := range files {
		if base := filepath.Base(file); !strings.HasSuffix(base, "_test.go") {
			r.write("program/"+base, adapt(readFile(r.t, from+"/"+base)))
		}
	}
}

// writeManifests writes the manifests of a folder of the repository, in place of others of the same name.
func (r *reader) writeManifests(from string) {
	r.t.Helper()
	root := os.DirFS(filepath.Join("..", "..", filepath.FromSlash(from)))
	err := fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".yaml" {
			r.write(name, readFile(r.t, from+"/"+name))
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// These commands serve until Ctrl-C: an operator, a cluster with an operator, and a cluster alone.
var (
	runsOperator = regexp.MustCompile(`^(?:my-)?operator run\b|^go run \.(?: run\b.*)?$`)
	runsBoth     = regexp.MustCompile(`\bdevcluster(?:@latest)? (?:.* )?-- \S`)
	runsCluster  = regexp.MustCompile(`^(?:go run \S+/)?devcluster(?:@latest)? -`)
	remark       = regexp.MustCompile(`\s+# .*$`)
)

// runBlock runs the commands of a block and returns their output, without that of commands that serve.
func (r *reader) runBlock(ctx context.Context, text, started string) (printed string) {
	r.t.Helper()
	var pending []string
	flush := func() {
		if len(pending) > 0 {
			printed += r.run(ctx, r.addresses.Replace(strings.Join(pending, "\n")))
			pending = nil
		}
	}
	for _, command := range (documents.Block{Text: text}).Commands() {
		line := remark.ReplaceAllString(command, "")
		if runsOperator.MatchString(line) || runsBoth.MatchString(line) || runsCluster.MatchString(line) {
			flush()
			r.serve(ctx, line, started)
			continue
		}
		pending = append(pending, command)
	}
	flush()
	return printed
}

// serve starts a command that serves until Ctrl-C, and waits until it does. An operator takes the place of the one
// before.
func (r *reader) serve(ctx context.Context, line, started string) *process {
	r.t.Helper()
	both := runsBoth.MatchString(line)
	isOperator := both || runsOperator.MatchString(line)
	if isOperator {
		r.stop(func(p *process) bool { return p.isOperator })
	} else {
		started = "The development cluster is ready"
	}
	p := r.start(ctx, r.addresses.Replace(line))
	p.isOperator = isOperator
	if both {
		_, kubeconfig, _ := strings.Cut(p.await("KUBECONFIG="), "KUBECONFIG=")
		r.export("KUBECONFIG", strings.TrimSpace(kubeconfig))
	}
	p.await(cmp.Or(started, "Operator started"))
	return p
}

// operator returns the operator that was started last.
func (r *reader) operator() *process {
	r.t.Helper()
	for _, p := range slices.Backward(r.processes) {
		if p.isOperator {
			return p
		}
	}
	r.t.Fatal("there is no operator")
	return nil
}

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// play runs the commands of a session, and compares the log lines about objects and activities with those below them.
func (r *reader) play(ctx context.Context, p *process, session string) {
	r.t.Helper()
	p.rewind()
	for line := range strings.Lines(session) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			r.run(ctx, command)
			continue
		}
		got := p.awaitLine(line, func(line string) bool {
			return strings.HasPrefix(line, "[") || strings.Contains(line, " activity=")
		})
		if port.ReplaceAllString(got, "PORT") != port.ReplaceAllString(line, "PORT") {
			r.t.Errorf("the session has the line\n%s\ngot:\n%s", line, got)
		}
	}
}

// runSketch runs the operator with which the tutorial begins: it logs a created object.
func runSketch(ctx context.Context, r *reader) {
	r.t.Helper()
	r.run(ctx, "kubectl delete evc my-claim")
	r.stop(func(p *process) bool { return p.isOperator })
	r.run(ctx, "kubectl apply -f object.yaml")
	r.install(ctx, "docs/tutorial.md")
	r.serve(ctx, "my-operator run -A", "A claim is created")
}

// runDeployed runs the operator with the arguments of the Deployment, and calls its probes.
func runDeployed(ctx context.Context, r *reader) {
	r.t.Helper()
	var deployment appsv1.Deployment
	manifest := readFile(r.t, "examples/getting-started/deploy/deployment.yaml")
	if err := yaml.UnmarshalStrict([]byte(manifest), &deployment); err != nil {
		r.t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	r.serve(ctx, "operator "+strings.Join(container.Args, " "), "Handler succeeded")
	ports := map[string]int32{}
	for _, one := range container.Ports {
		ports[one.Name] = one.ContainerPort
	}
	const get = "curl --fail --silent --show-error localhost:%d%s"
	r.runBlock(ctx, fmt.Sprintf(get, ports["metrics"], "/metrics"), "")
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		r.runBlock(ctx, fmt.Sprintf(get, ports[probe.HTTPGet.Port.StrVal], probe.HTTPGet.Path), "")
	}
}
