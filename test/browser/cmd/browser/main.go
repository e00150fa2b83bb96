// Command browser gets what tests in a browser need: a Chromium, if there is none, and axe-core.
//
//	browser        install what is missing, and say what there is
//	browser find   say where Chromium is, or fail
//
// It stands apart because it may change the machine, as root; the tests never do. Its neighbour programs does the work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/browser/programs"
)

// limit ends an installation that hangs.
const limit = 15 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch {
	case slices.Equal(args, []string{"find"}):
		path, err := programs.Chromium()
		if err == nil {
			_, err = fmt.Fprintln(out, path)
		}
		return err
	case len(args) > 0:
		return fmt.Errorf("unknown arguments %q: none, or find", args)
	}
	return install(ctx, out)
}

func install(ctx context.Context, out io.Writer) error {
	path, err := programs.InstallChromium(ctx, out)
	if err != nil {
		return err
	}
	version, err := programs.Version(ctx, path)
	if err != nil {
		return err
	}
	if _, err := programs.Axe(ctx, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %s\naxe-core %s\n", path, version, programs.AxeVersion)
	return err
}
