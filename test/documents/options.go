package documents

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// optionSources are what a package declares about options: interfaces, the functions that return them, and the
// functions that accept them as their last parameter.
type optionSources struct {
	families      map[string]*ast.InterfaceType
	familyByFunc  map[string]string // families by functions
	familyByVerb  map[string]string // families by verbs
	summaryByFunc map[string]string // first sentences by functions
}

// nameLink is a link of a doc comment, such as [Value].
var nameLink = regexp.MustCompile(`\[([A-Za-z.]+)\]`)

// OptionsTable returns a table of the options of a package, and of the verbs that accept each.
func OptionsTable(sources fs.FS, folder string) (string, error) {
	found := optionSources{
		map[string]*ast.InterfaceType{}, map[string]string{}, map[string]string{}, map[string]string{},
	}
	files, err := fs.Glob(sources, folder+"/*.go")
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return "", err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			return "", err
		}
		for _, declaration := range file.Decls {
			found.add(declaration)
		}
	}
	return found.table(), nil
}

func (o optionSources) add(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if declared, ok := spec.(*ast.TypeSpec); ok {
				if family, ok := declared.Type.(*ast.InterfaceType); ok {
					o.families[declared.Name.Name] = family
				}
			}
		}
	case *ast.FuncDecl:
		name := d.Name.Name
		if !ast.IsExported(name) {
			return
		}
		if results := d.Type.Results; results != nil && len(results.List) == 1 && d.Recv == nil {
			if family, ok := results.List[0].Type.(*ast.Ident); ok {
				o.familyByFunc[name] = family.Name
				o.summaryByFunc[name] = new(doc.Package).Synopsis(d.Doc.Text())
			}
		}
		parameters := d.Type.Params.List
		if len(parameters) == 0 {
			return
		}
		if rest, ok := parameters[len(parameters)-1].Type.(*ast.Ellipsis); ok {
			if family, ok := rest.Elt.(*ast.Ident); ok {
				o.familyByVerb[name] = family.Name
			}
		}
	}
}

// members are the methods of a family, with those of the families in it.
func (o optionSources) members(family string) map[string]bool {
	all := map[string]bool{}
	if o.families[family] == nil {
		return all
	}
	for _, field := range o.families[family].Methods.List {
		for _, name := range field.Names {
			all[name.Name] = true
		}
		if embedded, ok := field.Type.(*ast.Ident); ok {
			maps.Copy(all, o.members(embedded.Name))
		}
	}
	return all
}

func (o optionSources) table() string {
	lines := []string{"| Option | Purpose | Accepted by |", "|--|--|--|"}
	for _, option := range slices.Sorted(maps.Keys(o.familyByFunc)) {
		own := o.members(o.familyByFunc[option])
		var verbs []string
		for _, verb := range slices.Sorted(maps.Keys(o.familyByVerb)) {
			needed := o.members(o.familyByVerb[verb])
			missing := func(member string) bool { return !own[member] }
			if len(needed) > 1 && !slices.ContainsFunc(slices.Collect(maps.Keys(needed)), missing) {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			purpose := nameLink.ReplaceAllString(o.summaryByFunc[option], "`$1`")
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", option, purpose, strings.Join(verbs, ", ")))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
