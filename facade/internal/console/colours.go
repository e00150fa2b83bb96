package console

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// OnTerminal tells whether colours can be shown on out: it is a terminal, which knows them, and nobody has said, by the
// environment variable NO_COLOR, that there are to be none. A pipe, a file, and the log of a pod are no terminals.
func OnTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// The colours of terminals.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	usual  = "\x1b[0m"
)

// paint gives a text in the colour of the level; of most lines, it is the usual one.
func (t textFormat) paint(level slog.Level, text string) string {
	colour := ""
	switch {
	case !t.colours:
	case level >= slog.LevelError:
		colour = red
	case level >= slog.LevelWarn:
		colour = yellow
	case level < slog.LevelInfo:
		colour = faint
	}
	if colour == "" {
		return text
	}
	return colour + text + usual
}
