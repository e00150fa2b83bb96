package documents

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// IsProgram reports whether the block is a whole Go file, with a package clause and imports.
func (b Block) IsProgram() bool { return packageClause.MatchString(b.Text) }

// Snippets are the blocks of Go of a document, except quotes of files: declarations, or statements that have op, an
// operator.
func Snippets(document string) []Block {
	return slices.DeleteFunc(Blocks(document), func(b Block) bool { return b.Language != "go" || b.File != "" })
}

// Compiler compiles snippets.
type Compiler struct {
	header  string
	imports types.Importer
	set     *token.FileSet
}

// NewCompiler makes one for snippets that use these packages, given as in an import declaration. The go command in the
// folder finds them.
func NewCompiler(folder string, imports ...string) (*Compiler, error) {
	c := &Compiler{set: token.NewFileSet()}
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "--"}
	c.header = "package snippet\n"
	for _, one := range imports {
		words := strings.Fields(one)
		path := strings.Trim(words[len(words)-1], `"`)
		arguments = append(arguments, path)
		c.header += "import " + one + "\n"
	}
	command := exec.Command("go", arguments...) //nolint:gosec // the imports are those of a test
	command.Dir = folder
	var told bytes.Buffer
	command.Stderr = &told
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of snippets: %w: %s", err, told.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, found := strings.Cut(strings.TrimSpace(line), " "); found {
			files[path] = file
		}
	}
	c.imports = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	return c, nil
}

// Check compiles a snippet, with further declarations that the document leaves out. Variables that are not used are no
// mistake there.
func (c *Compiler) Check(s Block, given string) error {
	before := fmt.Sprintf("%s%s\n", c.header, given)
	file, err := c.parse(s.Line, before, s.Text, "\n")
	if err != nil {
		var statements error
		file, statements = c.parse(s.Line, before+"func _(op *kopf.Operator) {\n", s.Text, "\n}\n")
		if statements != nil {
			return errors.Join(err, statements)
		}
	}
	return c.check(file)
}

// CheckProgram compiles a file with its own imports, which must be among those of the compiler.
func (c *Compiler) CheckProgram(source string) error {
	file, err := parser.ParseFile(c.set, "program", source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	return c.check(file)
}

func (c *Compiler) check(file *ast.File) error {
	var wrong []error
	config := types.Config{Importer: c.imports, Error: func(err error) {
		var problem types.Error
		if !errors.As(err, &problem) || !problem.Soft {
			wrong = append(wrong, err)
		}
	}}
	_, _ = config.Check("snippet", c.set, []*ast.File{file}, nil) // the errors are in wrong
	return errors.Join(wrong...)
}

// parse has errors name the line in the document.
func (c *Compiler) parse(line int, before, text, after string) (*ast.File, error) {
	source := fmt.Sprintf("%s//line snippet:%d\n%s%s", before, line, text, after)
	return parser.ParseFile(c.set, "given", source, parser.SkipObjectResolution)
}
