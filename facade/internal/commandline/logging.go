package commandline

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/console"
)

// logFlags are the flags of the log. Kopf has the same flags.
type logFlags struct {
	console.Options // with the values of --log-format and --log-refkey

	verbose, debug, quiet bool
	prefix, noPrefix      bool // --log-prefix and --no-log-prefix
}

// formatFlags are the flags that determine the form of lines. A log handler of the program has its own form, so they
// are rejected with one.
var formatFlags = []string{"log-format", "log-refkey", "log-prefix", "no-log-prefix"}

// addFlags adds the flags of the log.
func (l *logFlags) addFlags(flags *pflag.FlagSet) {
	flags.BoolVarP(&l.verbose, "verbose", "v", false, "log decisions and their reasons, too")
	flags.BoolVarP(&l.debug, "debug", "d", false, "log everything, the libraries below included")
	flags.BoolVarP(&l.quiet, "quiet", "q", false, "log warnings and errors only")
	flags.StringVar(
		(*string)(&l.Format), "log-format", string(console.Full),
		"the `format` of the log: plain (message and values), full (time and level as well), json (one object a line)",
	)
	flags.StringVar(
		&l.ReferenceKey, "log-refkey", "",
		"the `key` by which lines of --log-format=json have the object that they are about; default: object",
	)
	flags.BoolVar(
		&l.prefix, "log-prefix", false, "begin messages with the object, as [namespace/name]; default: not in json",
	)
	flags.BoolVar(&l.noPrefix, "no-log-prefix", false, "do not begin messages with the object")
}

// checkFlags validates the flags and normalizes the format, which is case-insensitive as in Kopf.
func (l *logFlags) checkFlags(cmd *cobra.Command) error {
	l.Format = console.Format(strings.ToLower(string(l.Format)))
	switch {
	case l.quiet && (l.verbose || l.debug):
		return asUsageError(cmd, errors.New("-q (--quiet) excludes -v (--verbose) and -d (--debug)"))
	case !l.Format.IsValid():
		return asUsageError(cmd, fmt.Errorf("unknown log format %q: it is plain, full or json", l.Format))
	// A taken key would appear twice in each JSON line.
	case slices.Contains(console.JSONLineKeys(), l.ReferenceKey):
		return asUsageError(cmd, fmt.Errorf("--log-refkey: %q is the key of something else in each line",
			l.ReferenceKey))
	case l.prefix && l.noPrefix:
		return asUsageError(cmd, errors.New("--log-prefix and --no-log-prefix exclude each other"))
	}
	return nil
}

// newLogger returns the logger for these flags. It writes to the error output of the command, or to the program's own
// handler if there is one.
func (l *logFlags) newLogger(cmd *cobra.Command, operator string, handler slog.Handler) (logr.Logger, error) {
	// The log goes to the error output, as in Kopf: the output of commands stays usable in pipes.
	out := cmd.ErrOrStderr()
	if handler == nil {
		return console.New(out, l.consoleOptions(cmd, operator, out)), nil
	}
	// A flag without effect would be confusing, so it is an error.
	for _, name := range formatFlags {
		if cmd.Flags().Changed(name) {
			return logr.Logger{}, asUsageError(cmd, fmt.Errorf(
				"--%s has no effect: the program has a handler of its own for the log, which decides what lines look "+
					"like", name,
			))
		}
	}
	return console.NewForHandler(handler, out, l.consoleOptions(cmd, operator, out)), nil
}

// consoleOptions converts the flags to options of the log.
func (l *logFlags) consoleOptions(cmd *cobra.Command, operator string, out io.Writer) console.Options {
	o := l.Options
	o.Operator, o.Colours = operator, console.OnTerminal(out)
	// Without either flag, the default depends on the format.
	if cmd.Flags().Changed("log-prefix") || cmd.Flags().Changed("no-log-prefix") {
		// Each of the flags can also be given as false, which means the opposite.
		prefixed := l.prefix || !l.noPrefix && !cmd.Flags().Changed("log-prefix")
		o.Prefix = &prefixed
	}
	switch {
	// --debug includes --verbose, so it is checked first.
	case l.debug:
		o.Verbosity = console.Debug
	case l.verbose:
		o.Verbosity = console.Verbose
	case l.quiet:
		o.Verbosity = console.Quiet
	}
	return o
}

// redirectLibraries makes all libraries log to this logger. With a handler of the program, the standard loggers are
// left alone: they may write to that handler already.
func (l *logFlags) redirectLibraries(log logr.Logger, ownHandler bool) {
	ctrl.SetLogger(log)
	console.ForwardKlog(log, l.debug)
	if !ownHandler {
		console.ForwardStandard(log)
	}
}
