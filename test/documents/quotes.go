package documents

import (
	"fmt"
	"io/fs"
	"strings"
)

// Quote is a block in a document that repeats lines of a file.
type Quote struct {
	// Line is the line of the document on which the block begins.
	Line int
	// File is the path of the file from the root of the repository.
	File string
	// Text is the content of the block.
	Text string
}

// Quotes returns the quotes of a document: the blocks below a comment that names the file, such as
// <!-- examples/clusters/main.go -->.
func Quotes(document string) (all []Quote) {
	for _, block := range Blocks(document) {
		if block.File != "" {
			all = append(all, Quote{Line: block.Line, File: block.File, Text: block.Text})
		}
	}
	return all
}

// WithoutQuotes returns the document with empty lines in place of its quotes, so that line numbers stay the same.
func WithoutQuotes(document string) string {
	return anyBlock.ReplaceAllStringFunc(document, func(block string) string {
		if !strings.HasPrefix(block, "<!-- ") {
			return block
		}
		return strings.Repeat("\n", strings.Count(block, "\n"))
	})
}

// Check returns an error if the lines of the quote are not consecutive lines of its file. Replace adapts the text of
// the file first, such as import paths.
func (q Quote) Check(root fs.FS, replace *strings.Replacer) error {
	content, err := fs.ReadFile(root, q.File)
	if err != nil {
		return err
	}
	if strings.Contains("\n"+replace.Replace(string(content)), "\n"+q.Text) {
		return nil
	}
	return fmt.Errorf("line %d: the block is not a part of %s", q.Line, q.File)
}
