package console

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

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
func (t textFormat) paintLevel(level slog.Level, text string) string {
	colour := ""
	// A level between two named ones has the colour of the lower one.
	switch {
	case !t.colours:
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
