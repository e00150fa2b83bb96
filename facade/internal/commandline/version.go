package commandline

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// versionCommand prints what the flag --version does.
func versionCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the program and of its libraries", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), p.displayName(), version())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// version is that of the program, with the versions of Go and of the libraries that matter for debugging.
func version() string {
	const module = "github.com/kopf-runtime/kopf-runtime"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	parts := []string{info.Main.Version}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			parts = append(parts, "kopf-runtime "+dependency.Version)
		}
	}
	return strings.Join(append(parts, info.GoVersion), ", ")
}
