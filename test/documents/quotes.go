package documents

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Quotes returns the blocks of a document that repeat lines of a file: those below a comment that names the file from
// the root of the repository, such as <!-- examples/clusters/main.go -->.
func Quotes(document string) []Block {
	return slices.DeleteFunc(Blocks(document), func(b Block) bool { return b.File == "" })
}

// CheckQuote returns an error if the lines of the quote are not consecutive lines of its file. Replace adapts the text
// of the file first, such as import paths.
func (b Block) CheckQuote(root fs.FS, replace *strings.Replacer) error {
	content, err := fs.ReadFile(root, b.File)
	if err != nil {
		return err
	}
	if strings.Contains("\n"+replace.Replace(string(content)), "\n"+b.Text) {
		return nil
	}
	return fmt.Errorf("line %d: the block is not a part of %s", b.Line, b.File)
}
