package commandline

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// versionCommand returns the command that prints the same as the flag --version.
func versionCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of the program and of its libraries",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), p.displayName(), buildVersion())
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// buildVersion returns the version of the program, with the versions of Go and kopf-runtime, which matter for
// debugging.
func buildVersion() string {
	const module = "github.com/kopf-runtime/kopf-runtime"
	// Only binaries that were built without module support have no build information.
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	parts := []string{info.Main.Version}
	// The module is not among its own dependencies, so its examples show only one version.
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			parts = append(parts, "kopf-runtime "+dependency.Version)
		}
	}
	return strings.Join(append(parts, info.GoVersion), ", ")
}
