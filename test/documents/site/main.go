// Command site builds a static site from the pages in docs.
//
//	go run ./test/documents/site -root . -into bin/site -tools test/tools
//
// It writes the pages as the generator needs them, draws the diagrams whose sources have changed, runs the generator
// of docs/site/requirements.txt, and checks the result: every link and anchor must have a target, and no page may
// load anything from another host. The pages stay readable on GitHub, where their links and anchors are the same.
//
// With -publish DIR, the site becomes a folder of DIR with the name of the version, and DIR lists all versions: in a
// page, and in versions.json for the menu in the header of each page. Manuals of other versions stay as they are.
//
// It needs python3 with venv, and for changed diagrams the go command, which builds d2.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/python"
)

// options are the flags.
type options struct {
	root, outputDir, tools, ref string
	// publishDir is the folder of all manuals; empty does not publish the site.
	publishDir string
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.StringVar(&o.outputDir, "into", "bin/site", "the folder for the site and its sources")
	flag.StringVar(&o.tools, "tools", "test/tools", "the folder of the module that pins d2")
	flag.StringVar(&o.ref, "ref", "", "the branch or tag that links to sources lead to; main if empty")
	flag.StringVar(&o.publishDir, "publish", "",
		"the folder that gets the site as the manual of ref, beside those of other versions, and the list of versions")
	flag.Parse()
	o.ref = cmp.Or(o.ref, "main")
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options, out io.Writer) error {
	if err := draw(o.root, o.tools, out); err != nil {
		return err
	}
	if err := os.RemoveAll(o.outputDir); err != nil {
		return fmt.Errorf("removing the former site: %w", err)
	}
	pages, err := write(o)
	if err != nil {
		return err
	}
	if err := generate(o); err != nil {
		return err
	}
	html := filepath.Join(o.outputDir, "html")
	if problems := check(os.DirFS(html)); len(problems) > 0 {
		return fmt.Errorf("%s:\n%w", html, errors.Join(problems...))
	}
	if o.publishDir != "" {
		if err := publish(html, o.publishDir, o.ref); err != nil {
			return err
		}
		html = o.publishDir
	}
	_, err = fmt.Fprintf(out, "%d pages are in %s. To view them at http://localhost:8000:\n"+
		"  python3 -m http.server --bind 127.0.0.1 --directory %s 8000\n", pages, html, html)
	return err
}

// generate runs the generator. Its warnings, such as for a link to a missing page, are errors.
func generate(o options) error {
	requirements, err := os.ReadFile(filepath.Join(o.root, "docs", "site", "requirements.txt"))
	if err != nil {
		return fmt.Errorf("reading the requirements of the site: %w", err)
	}
	environment, err := python.Install("site", "Zensical of docs/site/requirements.txt", string(requirements))
	if err != nil {
		return err
	}
	program := filepath.Join(environment, "bin", "zensical")
	command := exec.Command(program, "build", "--clean", "--strict", //nolint:gosec // the pinned generator
		"--config-file", filepath.Join(o.outputDir, "mkdocs.yml"))
	command.Env = append(os.Environ(), "NO_COLOR=1")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("generating the site: %w\n%s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
