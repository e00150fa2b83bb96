package documents

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Block is a block of code or of other text in a document.
type Block struct {
	// Line is the line of the document on which the block begins.
	Line int
	// Language is the word after the backquotes.
	Language string
	// File is the path of the file that the block quotes; empty for other blocks.
	File string
	// Text is the content of the block.
	Text string
}

var (
	anyBlock = regexp.MustCompile("(?ms)^(?:<!-- ([\\w./-]+) -->\n)?( *)```([^\n`]*)\n(.*?)^ *```$")
	// needsLine is the first line of commands that the development cluster cannot run.
	needsLine = regexp.MustCompile(`\A# Needs (.+)\.\n`)
	// prompt matches the begin of commands: a prompt, or a program that pages use.
	prompt = regexp.MustCompile(`(?m)^(?:\$ |(?:[A-Z_]+=\S+ )*(?:\./)?(?:cd|curl|devcluster|docker|export|git|go|` +
		`helm|kopf|kubectl|make|mkdir|my-operator|operator|python3?) )`)
)

var (
	errUnmarked = errors.New("the block has commands: begin it with ```sh, so that a test runs them, " +
		"or with ```text if it only looks like commands")
	errShell = errors.New("begin blocks of commands with ```sh")
	errNeed  = errors.New("only a whole block can be left out: divide it, and begin the second one with the " +
		"reason, such as \"# Needs a cluster that runs containers.\"")
)

// Blocks returns all blocks of a document.
func Blocks(document string) (all []Block) {
	for _, at := range anyBlock.FindAllStringSubmatchIndex(document, -1) {
		b := Block{
			Line:     strings.Count(document[:at[8]], "\n") + 1,
			Language: document[at[6]:at[7]], Text: withoutIndent(document[at[8]:at[9]], document[at[4]:at[5]]),
		}
		if at[2] >= 0 {
			b.File = document[at[2]:at[3]]
		}
		all = append(all, b)
	}
	return all
}

// withoutIndent removes the spaces that a block in a list has before each line.
func withoutIndent(text, indent string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n"+indent, "\n"), "\n")
}

// IsCommands reports whether the block has commands for a shell.
func (b Block) IsCommands() bool { return b.Language == "sh" }

// Needs returns what the commands need beyond the development cluster, as the first line of the block has it. It is
// empty for commands that test/quickstart runs.
func (b Block) Needs() string {
	if found := needsLine.FindStringSubmatch(b.Text); found != nil {
		return found[1]
	}
	return ""
}

// Commands returns the commands of the block. Lines that belong together, such as a loop, are one command.
func (b Block) Commands() (all []string) {
	depth, continues := 0, false
	for line := range strings.Lines(b.Text) {
		line = strings.TrimRight(line, "\n")
		if strings.TrimSpace(line) == "" || depth == 0 && strings.HasPrefix(line, "#") {
			continue
		}
		switch {
		case continues:
			all[len(all)-1] += strings.TrimSpace(line)
		case depth > 0:
			all[len(all)-1] += "\n" + line
		default:
			all = append(all, line)
		}
		all[len(all)-1], continues = strings.CutSuffix(all[len(all)-1], "\\")
		if strings.HasSuffix(line, "; do") {
			depth++
		}
		if strings.HasPrefix(line, "done") {
			depth--
		}
	}
	return all
}

// Check reports commands that do not stand in a block of commands, and marks that do not begin their block.
func (b Block) Check() error {
	var problem error
	switch {
	case b.Language == "bash", b.Language == "shell", b.Language == "console":
		problem = errShell
	case b.Language == "" && b.File == "" && prompt.MatchString(b.Text):
		problem = errUnmarked
	case b.IsCommands() && b.Needs() == "" && strings.Contains(b.Text, "# Needs "):
		problem = errNeed
	default:
		return nil
	}
	return fmt.Errorf("line %d: %w", b.Line, problem)
}
