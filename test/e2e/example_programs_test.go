package e2e_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var examplesFolder = filepath.Join("..", "..", "examples")

// exampleProgram is an example with the command line of kopf.Main.
type exampleProgram struct {
	name, folder string
	scope        string // a flag; without one, it serves the namespace of the spec
	// omitted is the resource without which a request must be refused; without one, it is that of the example's object.
	omitted string
	skipped string // the reason to leave it out
	// leases is the namespace of the Leases that its replicas share; without one, it uses no Leases.
	leases string
}

// exampleProgramNotes has the properties of examples that cannot be seen from their files.
var exampleProgramNotes = map[string]exampleProgram{
	"02-children":          {omitted: "configmaps"},
	"09-testing":           {omitted: "configmaps"},
	"12-embedded":          {skipped: "it has no command line: it runs in the program of a user"},
	"99-all-at-once":       {omitted: "validatingwebhookconfigurations"},
	"clusters":             {scope: "--all-namespaces", omitted: "nodes"},
	"database-statefulset": {omitted: "persistentvolumeclaims"},
	"database":             {omitted: "databases/status"},
	"getting-started":      {omitted: "configmaps"},
	"kubebuilder":          {skipped: "controller-gen writes its permissions"},
	"lessons/13-children":  {omitted: "deployments"},
	"lessons/15-admission": {omitted: "validatingwebhookconfigurations"},
	"secrets":              {scope: "--all-namespaces", omitted: "serviceaccounts"},
	"tasks/not-called":     {skipped: "it waits ten minutes for a retry"},
	"tasks/secrets":        {skipped: "it needs a file with a key in /keys"},
	"tasks/own-storage":    {skipped: "it needs a database server"},
	"tasks/sharding":       {leases: "default"}, // as outside of a pod
}

// examplePrograms returns all examples, or those that the variable EXAMPLES names. Without the variable, it returns
// none: playing all of them takes long.
func examplePrograms() (all []exampleProgram) {
	wanted := os.Getenv("EXAMPLES")
	if wanted == "" {
		return nil
	}
	for _, name := range exampleNames() {
		if wanted != "all" && !slices.Contains(strings.Split(wanted, ","), name) {
			continue
		}
		one := exampleProgramNotes[name]
		one.name, one.folder = name, filepath.Join(examplesFolder, filepath.FromSlash(name))
		all = append(all, one)
	}
	return all
}

// exampleNames returns the folders of all examples with kopf.Main, and those that the notes skip.
func exampleNames() []string {
	names := map[string]bool{}
	for _, pattern := range []string{"*", filepath.Join("lessons", "*"), filepath.Join("tasks", "*")} {
		files, _ := filepath.Glob(filepath.Join(examplesFolder, pattern, "main.go")) // the pattern is valid
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err == nil && bytes.Contains(content, []byte("kopf.Main(")) {
				name, _ := filepath.Rel(examplesFolder, filepath.Dir(file)) // both begin alike
				names[filepath.ToSlash(name)] = true
			}
		}
	}
	for name, notes := range exampleProgramNotes {
		if notes.skipped != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// arguments are the flags of the program and of the command manifests for one namespace.
func (e exampleProgram) arguments(ns string) []string {
	if e.scope != "" {
		return []string{e.scope}
	}
	return []string{"-n", ns}
}

// file returns a file of the example. Lessons and tasks share some files.
func (e exampleProgram) file(name string) string {
	for _, folder := range []string{e.folder, filepath.Join(examplesFolder, "getting-started")} {
		if file := filepath.Join(folder, name); exists(file) {
			return file
		}
	}
	return filepath.Join(e.folder, name)
}

// installKinds installs the kinds of the example.
func (e exampleProgram) installKinds() {
	if file := e.file("crd.yaml"); exists(file) {
		install(file)
	}
}

// story returns the steps of expected.txt. Lessons and tasks do not have it.
func (e exampleProgram) story() []step {
	if file := filepath.Join(e.folder, "expected.txt"); exists(file) {
		return steps(file)
	}
	return nil
}
