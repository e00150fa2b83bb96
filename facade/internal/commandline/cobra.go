package commandline

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// refineCommandsOfCobra has the commands that cobra adds treat a wrong command line as all others do. On their own,
// some of them show a help instead, and exit with 0.
func refineCommandsOfCobra(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args = noShell
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		case "help":
			cmd.Args = knownCommand
		}
	}
}

func noShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var shells []string
	for _, one := range cmd.Commands() {
		shells = append(shells, one.Name())
	}
	return asUsage(cmd, fmt.Errorf("unknown shell %q: it is one of %s", args[0], strings.Join(shells, ", ")))
}

// knownCommand is for arguments that are the words of a command.
func knownCommand(cmd *cobra.Command, args []string) error {
	_, unknown, err := cmd.Root().Find(args)
	if err != nil || len(unknown) == 0 {
		return err
	}
	return asUsage(cmd, fmt.Errorf("unknown command %q", unknown[0]))
}
