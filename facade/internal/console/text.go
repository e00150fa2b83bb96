package console

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// composeText returns the line as text for people, one line per message:
//
//	[2024-05-06 07:08:09,123] kopf.objects         [INFO    ] [default/example-1] Handler succeeded handler=create_fn
//
// The object comes first, because people look for it. Only stacks and further lines of a message follow on their own
// lines, behind a tab. Apart from colours, a line contains nothing that a terminal interprets, and nothing that looks
// like another line. The widths of logger and level are those of Kopf.
func (o Options) composeText(l *line) []byte {
	var text strings.Builder
	if o.Format != Plain {
		fmt.Fprintf(&text, "[%s] %-20.20s %s ", l.time.Format("2006-01-02 15:04:05,000"),
			escapeControls(o.loggerName(l)),
			o.paintLevel(l.level, fmt.Sprintf("[%-8.8s]", levelNames(l.level).text)))
	}
	// The message may have several lines, which stay readable behind a tab.
	message := indentLines(l.message)
	if *o.Prefix && l.object.isObject() {
		message = "[" + quoteInBrackets(l.object.messagePrefix()) + "] " + message
	}
	text.WriteString(o.paintLevel(l.level, message))
	stack := ""
	for _, f := range l.fields {
		// A stack has many lines, so it comes last.
		if f.key == "stack" {
			stack = valueText(f.value)
			continue
		}
		fmt.Fprintf(&text, " %s=%s", quoteIfNeeded(f.key), formatValue(f.value))
	}
	if stack != "" {
		text.WriteString("\n\t" + indentLines(strings.TrimSpace(stack)))
	}
	text.WriteByte('\n')
	return []byte(text.String())
}

// loggerName returns the name of the logger in the terms of Kopf. Loggers of the operator with their own name keep it;
// others are named after the object or activity that they log about.
func (o Options) loggerName(l *line) string {
	name := l.logger
	// The dots make sure that only whole parts of the name are cut.
	if rest, ours := strings.CutPrefix(name+".", o.Operator+"."); ours {
		name = strings.TrimSuffix(rest, ".")
	}
	switch {
	case name != "":
		return name
	case l.object.isObject():
		return "kopf.objects"
	}
	// Kopf names the loggers of activities after the activity.
	for _, f := range l.fields {
		if f.key == "activity" {
			return "kopf.activities." + valueText(f.value)
		}
	}
	return o.Operator
}

// kopfLevelNames are Kopf's names of a level.
type kopfLevelNames struct{ json, text string }

// levelNames returns the names of a level in JSON and text lines.
func levelNames(level slog.Level) kopfLevelNames {
	switch {
	case level < slog.LevelInfo:
		return kopfLevelNames{"debug", "DEBUG"}
	case level < slog.LevelWarn:
		return kopfLevelNames{"info", "INFO"}
	case level < slog.LevelError:
		return kopfLevelNames{"warn", "WARNING"}
	case level < levelCritical:
		return kopfLevelNames{"error", "ERROR"}
	default:
		return kopfLevelNames{"fatal", "CRITICAL"}
	}
}

// levelCritical is Python's level CRITICAL, for failures that end the program. The framework does not use it, but
// programs can.
const levelCritical = slog.LevelError + 4

// OnTerminal reports whether out can show colours: it is a terminal that supports them, and the environment variable
// NO_COLOR is not set. Pipes, files and the logs of pods are not terminals.
func OnTerminal(out io.Writer) bool {
	// TERM=dumb is the convention of terminals without escape sequences, such as those of editors.
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// ANSI escape sequences for colours.
const (
	red        = "\x1b[31m"
	yellow     = "\x1b[33m"
	faintStyle = "\x1b[2m"
	resetStyle = "\x1b[0m"
)

// paintLevel returns the text in the colour of the level. Text of the level info is not coloured.
func (o Options) paintLevel(level slog.Level, text string) string {
	colour := ""
	// A level between two named ones has the colour of the lower one.
	switch {
	case !o.Colours:
	case level >= slog.LevelError:
		colour = red
	case level >= slog.LevelWarn:
		colour = yellow
	case level < slog.LevelInfo:
		colour = faintStyle
	}
	if colour == "" {
		return text
	}
	return colour + text + resetStyle
}
