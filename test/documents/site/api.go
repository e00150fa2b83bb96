package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

const (
	module     = "github.com/kopf-runtime/kopf-runtime"
	repository = "https://" + module
)

// packages are the packages that pages name, by their names in code.
var packages = map[string]string{
	"kopf":        "facade",
	"facadetest":  "facade/facadetest",
	"memapi":      "facade/facadetest/memapi",
	"explorer":    "facade/facadetest/explorer",
	"hierarchies": "facade/hierarchies",
	"diff":        "storage/diff",
	"diffbase":    "storage/diffbase",
	"progress":    "storage/progress",
	"tunnels":     "webhooks/tunnels",
}

// variables are the names that pages use for values of types of the facade.
var variables = map[string]string{"c": "Change", "op": "Operator"}

// apiLinks finds the documentation of names in code on pkg.go.dev.
type apiLinks struct {
	addresses map[string]string
}

func newAPILinks(sources fs.FS, ref string) (*apiLinks, error) {
	version := ""
	if strings.HasPrefix(ref, "v") {
		version = "@" + ref
	}
	links := &apiLinks{addresses: map[string]string{}}
	for name, folder := range packages {
		base := fmt.Sprintf("https://pkg.go.dev/%s%s/%s#", module, version, folder)
		names, methods, err := documents.Names(sources, folder)
		if err != nil {
			return nil, fmt.Errorf("listing the names of %s: %w", folder, err)
		}
		fields, sections, err := fieldsOf(sources, folder)
		if err != nil {
			return nil, fmt.Errorf("listing the fields of %s: %w", folder, err)
		}
		for _, one := range names {
			links.addresses[name+"."+one] = base + one
			links.addBare(one, base+one, name == "kopf")
		}
		for _, member := range methods {
			owner, method, _ := strings.Cut(member, ".")
			links.addBare(method, base+member, name == "kopf" && (owner == "Selection" || owner == "Operator"))
		}
		for _, member := range append(methods, fields...) {
			links.addresses[name+"."+member] = base + member
			if name == "kopf" {
				links.addFacade(member, base+member, sections)
			}
		}
	}
	return links, nil
}

// addBare adds a name without its package. A name with several meanings does not lead anywhere.
func (l *apiLinks) addBare(name, address string, ofFacade bool) {
	if _, known := l.addresses[name]; known || !ofFacade {
		address = ""
	}
	l.addresses[name] = address
}

// addFacade adds the short forms of a method or field: c.Patch, op.Run, Posting.Disabled.
func (l *apiLinks) addFacade(member, address string, sections map[string]string) {
	owner, name, _ := strings.Cut(member, ".")
	if owner == "Settings" {
		l.addBare(name, address, true)
	}
	for variable, of := range variables {
		if owner == of {
			l.addresses[variable+"."+name] = address
		}
	}
	if section := sections[owner]; section != "" {
		l.addresses[section+"."+name] = address
	}
}

// fieldsOf returns the exported fields of a package as "Type.Field", and the types of the fields of Settings with the
// names of these fields.
func fieldsOf(sources fs.FS, folder string) (fields []string, sections map[string]string, err error) {
	files, err := fs.Glob(sources, path.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	sections = map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return nil, nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			declared, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range declared.Fields.List {
				for _, name := range field.Names {
					if !name.IsExported() {
						continue
					}
					fields = append(fields, spec.Name.Name+"."+name.Name)
					if kind, ok := field.Type.(*ast.Ident); ok && spec.Name.Name == "Settings" {
						sections[kind.Name] = name.Name
					}
				}
			}
			return false
		})
	}
	return fields, sections, nil
}

// call matches a name with or without arguments.
var call = regexp.MustCompile(`^([A-Za-z]+(?:\.[A-Z]\w*)*)(?:\[[^]]*\])?(?:\([^()]*\))?$`)

// apiLink returns code as a link to the API if it is a name of it. In a table, each one is; elsewhere, the first on the
// page, and only with its package or variable: a word in code can have another meaning.
func (p *page) apiLink(before, span string) string {
	found := call.FindStringSubmatch(strings.Trim(span, "`"))
	line := before[strings.LastIndexByte(before, '\n')+1:]
	if found == nil || strings.HasPrefix(line, "#") {
		return span
	}
	address := p.api.addresses[found[1]]
	inTable := strings.HasPrefix(line, "|")
	if address == "" || !inTable && (p.linkedNames[found[1]] || !strings.Contains(found[1], ".")) {
		return span
	}
	p.linkedNames[found[1]] = true
	return fmt.Sprintf("[%s](%s)", span, address)
}
