package release_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stage is one stage of a Dockerfile. Its folder stands for the file system of the image.
type stage struct {
	folder, base, workdir, user string

	environment []string
	entrypoint  []string
}

// imageBuild runs the steps of a Dockerfile without a container: RUN is given to the shell, and absolute paths are
// those below the folder of the stage. The tools come from this machine.
type imageBuild struct {
	t       *testing.T
	context string // the folder with the sources
	stages  map[string]*stage
	last    *stage
}

// TestDockerfile builds the image of the first example, as far as that is possible without a container engine: the
// parser of BuildKit must accept the file, and its steps must give a program that starts in a folder with nothing
// else.
func TestDockerfile(t *testing.T) {
	b := &imageBuild{t: t, context: copyProject(t), stages: map[string]*stage{}}
	file, err := os.Open(filepath.Join(b.context, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		t.Fatalf("parsing the Dockerfile: %v", err)
	}
	for _, warning := range parsed.Warnings {
		t.Errorf("warning of the parser: %s", warning.Short)
	}
	for _, node := range parsed.AST.Children {
		b.runStep(t.Context(), strings.ToUpper(node.Value), node.Flags, arguments(node), node.Original)
	}
	b.requireImage()
}

// arguments returns the words of an instruction.
func arguments(node *parser.Node) (words []string) {
	for next := node.Next; next != nil; next = next.Next {
		words = append(words, next.Value)
	}
	return words
}

// runStep runs one instruction. An instruction that it does not know fails the test.
func (b *imageBuild) runStep(ctx context.Context, name string, flags, words []string, text string) {
	b.t.Helper()
	switch name {
	case "FROM":
		b.last = &stage{folder: b.t.TempDir(), base: words[0], workdir: "/"}
		if len(words) == 3 { // FROM base AS name
			b.stages[words[2]] = b.last
		}
	case "ARG":
		value, known := map[string]string{"TARGETOS": runtime.GOOS, "TARGETARCH": runtime.GOARCH}[words[0]]
		if !known {
			b.t.Fatalf("%s: the test has no value for this argument", text)
		}
		b.last.environment = append(b.last.environment, words[0]+"="+value)
	case "WORKDIR":
		b.last.workdir = words[0]
	case "COPY":
		b.copyFiles(flags, words)
	case "RUN":
		b.runCommand(ctx, words[0])
	case "USER":
		b.last.user = words[0]
	case "ENTRYPOINT":
		b.last.entrypoint = words
	default:
		b.t.Fatalf("%s: the test does not know this instruction", text)
	}
}

// path returns the path of a file of the stage on this machine.
func (s *stage) path(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = filepath.Join(s.workdir, name)
	}
	return filepath.Join(s.folder, name)
}

// copyFiles copies files from the sources, or from another stage.
func (b *imageBuild) copyFiles(flags, words []string) {
	b.t.Helper()
	from := func(name string) string { return filepath.Join(b.context, name) }
	for _, flag := range flags {
		stage, is := strings.CutPrefix(flag, "--from=")
		if !is || b.stages[stage] == nil {
			b.t.Fatalf("COPY %s: the test knows --from with a stage above", flag)
		}
		from = b.stages[stage].path
	}
	to := words[len(words)-1]
	for _, source := range words[:len(words)-1] {
		target := b.last.path(to)
		info, err := os.Stat(from(source))
		if err != nil {
			b.t.Fatalf("COPY %s: %v", source, err)
		}
		if info.IsDir() {
			b.copyFolder(from(source), target)
			continue
		}
		if strings.HasSuffix(to, "/") {
			target = filepath.Join(target, filepath.Base(source))
		}
		copyFile(b.t, from(source), target, info.Mode())
	}
}

// copyFolder copies a folder over one that can have some of its files already.
func (b *imageBuild) copyFolder(from, to string) {
	b.t.Helper()
	err := filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		copyFile(b.t, path, filepath.Join(to, name), 0o644)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// runCommand runs a command in the working directory of the stage.
func (b *imageBuild) runCommand(ctx context.Context, command string) {
	b.t.Helper()
	// The only absolute paths of the Dockerfile follow a space.
	command = strings.ReplaceAll(command, " /", " "+b.last.folder+"/")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-ec", command)
	cmd.Dir = b.last.path(".")
	cmd.Env = append(os.Environ(), append(b.last.environment, "GOWORK=off", "GOFLAGS=")...)
	if output, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("RUN %s: %v\n%s", command, err, output)
	}
}

// requireImage checks the last stage: it has the program alone, which runs without a shell, and not as root.
func (b *imageBuild) requireImage() {
	b.t.Helper()
	if len(b.last.entrypoint) != 1 {
		b.t.Fatalf("the entry point must be the program alone, got %q", b.last.entrypoint)
	}
	if !strings.HasSuffix(b.last.base, ":nonroot") || strings.HasPrefix(b.last.user, "0") || b.last.user == "" {
		b.t.Errorf("the image must not run as root, got the base %s and the user %q", b.last.base, b.last.user)
	}
	files, err := os.ReadDir(b.last.folder)
	if err != nil || len(files) != 1 {
		b.t.Errorf("the image must have one file, got %v, %v", files, err)
	}
	// Without an environment: the program must need neither a home nor a path.
	cmd := exec.CommandContext(b.t.Context(), b.last.path(b.last.entrypoint[0]), "version")
	cmd.Env = []string{}
	output, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "kopf-runtime") {
		b.t.Errorf("the program must print its version, got %q, %v", output, err)
	}
}

// copyProject copies the first example into a folder of its own, as a module that uses this working copy of
// kopf-runtime, and returns the folder.
func copyProject(t *testing.T) string {
	t.Helper()
	const example = module + "/examples/getting-started"
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"Dockerfile", ".dockerignore", "main.go", "api/v1/website_types.go",
		"api/v1/zz_generated.deepcopy.go"} {
		text := readFile(t, filepath.Join(root, "examples/getting-started", name))
		writeFile(t, filepath.Join(folder, name), strings.ReplaceAll(text, example, "example.org/websites"))
	}
	// The versions are those of the module itself, so that nothing else is downloaded.
	required := readFile(t, filepath.Join(root, "go.mod"))
	required = strings.Replace(required, "module "+module, "module example.org/websites", 1)
	writeFile(t, filepath.Join(folder, "go.mod"), required+fmt.Sprintf(
		"\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root))
	writeFile(t, filepath.Join(folder, "go.sum"), readFile(t, filepath.Join(root, "go.sum")))
	return folder
}
