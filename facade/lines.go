package facade

import (
	"fmt"
	"strings"

	"go.uber.org/zap/zapcore"
)

// lineCore writes logs for people: one line a message,
//
//	2024-05-06 07:08:09.123 INFO  [default/example-1] Handler succeeded handler=create_fn reason=create
//
// with the object in front, as it is what one looks for. Only stacks, and further lines of a message, follow on lines
// of their own, behind a tab. Nothing in a line is obeyed by a terminal, or looks like another line.
type lineCore struct {
	out    zapcore.WriteSyncer
	plain  bool   // without time and level
	own    string // the logger name that is left out
	fields []zapcore.Field
}

var _ zapcore.Core = (*lineCore)(nil)

// Enabled is always true: another core around this one filters by level.
func (*lineCore) Enabled(zapcore.Level) bool { return true }

func (l *lineCore) With(fields []zapcore.Field) zapcore.Core {
	derived := *l
	derived.fields = append(l.fields[:len(l.fields):len(l.fields)], fields...)
	return &derived
}

func (l *lineCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, l)
}

func (l *lineCore) Sync() error { return l.out.Sync() }

func (l *lineCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	pairs, about := l.pairs(fields)
	var line strings.Builder
	if !l.plain {
		fmt.Fprintf(
			&line, "%s %-5s ", entry.Time.Format("2006-01-02 15:04:05.000"), strings.ToUpper(severity(entry.Level)),
		)
	}
	if about != "" {
		fmt.Fprintf(&line, "[%s] ", bracketed(about))
	}
	line.WriteString(indented(entry.Message))
	if name := l.nameOf(entry); name != "" {
		fmt.Fprintf(&line, " logger=%s", quoted(name))
	}
	stack := ""
	for _, p := range pairs {
		if p.key == "stack" {
			stack = fmt.Sprint(p.value)
			continue
		}
		fmt.Fprintf(&line, " %s=%s", quoted(p.key), shown(p.value))
	}
	if stack != "" {
		line.WriteString("\n\t" + indented(strings.TrimSpace(stack)))
	}
	line.WriteByte('\n')
	_, err := l.out.Write([]byte(line.String()))
	return err
}

// nameOf is the logger's name without that of the operator.
func (l *lineCore) nameOf(entry zapcore.Entry) string {
	if rest, ours := strings.CutPrefix(entry.LoggerName+".", l.own+"."); ours {
		return strings.TrimSuffix(rest, ".")
	}
	return entry.LoggerName
}
