package console

import (
	"fmt"
	"log/slog"
	"strings"
)

// textFormat is for people: one line a message,
//
//	[2024-05-06 07:08:09,123] kopf.objects         [INFO    ] [default/example-1] Handler succeeded handler=create_fn
//
// with the object in front, as it is what one looks for. Only stacks, and further lines of a message, follow on lines
// of their own, behind a tab. No terminal obeys anything in a line but the colours, and nothing in it looks like
// another line.
type textFormat struct {
	plain    bool // without time, logger and level
	prefixed bool
	colours  bool
	operator string // the name of a logger that is left out
}

func (t textFormat) compose(l *line) []byte {
	var text strings.Builder
	if !t.plain {
		fmt.Fprintf(&text, "[%s] %-20.20s %s ", l.time.Format("2006-01-02 15:04:05,000"), onOneLine(t.logger(l)),
			t.paint(l.level, fmt.Sprintf("[%-8.8s]", levelNames(l.level).text)))
	}
	message := indent(l.message)
	if t.prefixed && l.object.isObject() {
		message = "[" + quoteInBrackets(l.object.prefix()) + "] " + message
	}
	text.WriteString(t.paint(l.level, message))
	stack := ""
	for _, f := range l.fields {
		if f.key == "stack" {
			stack = valueText(f.value)
			continue
		}
		fmt.Fprintf(&text, " %s=%s", quote(f.key), format(f.value))
	}
	if stack != "" {
		text.WriteString("\n\t" + indent(strings.TrimSpace(stack)))
	}
	text.WriteByte('\n')
	return []byte(text.String())
}

// logger is who speaks, by the names that Kopf's users know: of the loggers of the operator, those that have a name of
// their own, and the others by what they speak about.
func (t textFormat) logger(l *line) string {
	name := l.logger
	if rest, ours := strings.CutPrefix(name+".", t.operator+"."); ours {
		name = strings.TrimSuffix(rest, ".")
	}
	switch {
	case name != "":
		return name
	case l.object.isObject():
		return "kopf.objects"
	}
	for _, f := range l.fields {
		if f.key == "activity" {
			return "kopf.activities." + valueText(f.value)
		}
	}
	return t.operator
}

// names are Kopf's names of a level.
type names struct{ json, text string }

func levelNames(level slog.Level) names {
	switch {
	case level < slog.LevelInfo:
		return names{"debug", "DEBUG"}
	case level < slog.LevelWarn:
		return names{"info", "INFO"}
	case level < slog.LevelError:
		return names{"warn", "WARNING"}
	case level < beyondErrors:
		return names{"error", "ERROR"}
	default:
		return names{"fatal", "CRITICAL"}
	}
}

// beyondErrors is Python's level for what nobody can go on from. The framework has nothing of it.
const beyondErrors = slog.LevelError + 4
