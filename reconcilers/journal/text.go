package journal

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// WriteText writes the explanation for users. Error texts in it cannot control the terminal, because control characters
// are replaced.
func (e Explanation) WriteText(w io.Writer) error {
	// Build the whole text first, so that only one write can fail.
	t := &text{}
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + e.Name
	}
	t.addLine("%s %s, as seen by operator %s %s UTC", e.Kind, name, e.Operator, formatTime(e.At))
	if len(e.Facts) > 0 {
		t.addLine("\nNOW")
		for _, sentence := range e.Facts {
			t.addLine("  %s", sentence)
		}
	}
	t.addLine("\nHANDLERS")
	for _, a := range e.Handlers {
		t.addAnswer(a)
	}
	if len(e.Handlers) == 0 {
		t.addLine("  No handlers are registered for this kind.")
	}
	t.addLine("\nHISTORY, the oldest first")
	for i := range e.History {
		t.addEntry(&e.History[i])
	}
	if len(e.History) == 0 {
		t.addLine("  No entries.")
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// text is the output of WriteText.
type text struct{ strings.Builder }

// addLine adds one line. Leading newlines of the format are kept; all others are replaced.
func (t *text) addLine(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	// Only newlines of the format itself are layout; any others come from values.
	begin := len(line) - len(strings.TrimLeft(line, "\n"))
	t.WriteString(line[:begin] + printableText(line[begin:]) + "\n")
}

// printableText replaces characters that are invisible or start a new line.
func printableText(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case !unicode.IsPrint(r) && r != ' ':
			// This includes the escape character that starts terminal sequences, and invisible format characters.
			return unicode.ReplacementChar
		default:
			return r
		}
	}, line)
}

// addAnswer adds the answer for one handler.
func (t *text) addAnswer(a Answer) {
	head := fmt.Sprintf("%s (%s)", a.Handler.ID, a.Handler.Purpose)
	if len(a.Handler.Requirements) > 0 {
		head += ", for " + strings.Join(a.Handler.Requirements, ", ")
	}
	t.addLine("  %s", head)
	t.addLine("      %s", a.Text)
}

// addEntry adds one entry of the history, with its repetitions.
func (t *text) addEntry(e *Entry) {
	head := strings.TrimPrefix(formatTime(e.At), "at ")
	// Repeated entries show how often and for how long.
	if e.First != nil {
		head += fmt.Sprintf(" (%d times in %s)", e.Times, e.At.Sub(*e.First).Round(time.Millisecond))
	}
	t.addLine("  %s  %s", head, e)
}

// String returns a summary of the entry in one line.
func (e *Entry) String() string {
	switch {
	case e.Event != nil:
		return printableText("event " + e.Event.Type + ", version " + e.Event.Version)
	case e.Evaluation != nil:
		return printableText(e.Evaluation.summaryText())
	case e.Attempt != nil:
		return printableText("called " + e.Attempt.Handler + ": " + e.Attempt.outcomeText())
	case e.Write != nil:
		return printableText(e.Write.writeText())
	case e.Hold != nil:
		return printableText(e.Hold.holdText())
	default:
		return ""
	}
}

// summaryText describes the decisions of a pass in one line.
func (l *Evaluation) summaryText() string {
	text := "evaluated " + l.causeText()
	if l.DroppedReason != "" {
		text += "; dropped progress: " + l.DroppedReason
	}
	if l.UnnoticedState != "" {
		text += "; will not be noticed: " + l.UnnoticedState
	}
	var chosen, refused []string
	for _, v := range l.Verdicts {
		if v.Reason == "" {
			chosen = append(chosen, v.Handler)
		} else {
			refused = append(refused, v.Handler+" ("+v.Reason+")")
		}
	}
	if len(chosen) > 0 {
		text += "; selected " + strings.Join(chosen, ", ")
	}
	if len(refused) > 0 {
		text += "; skipped " + strings.Join(refused, ", ")
	}
	return text
}

// writeText describes the written paths.
func (w *Write) writeText() string {
	text := "wrote " + strings.Join(w.Paths, ", ")
	if w.Origin != "" {
		text += " for " + w.Origin
	}
	if w.Error != "" {
		text += "; failed: " + w.Error
	}
	return text
}
