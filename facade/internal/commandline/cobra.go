package commandline

import "github.com/spf13/cobra"

// refineCobraCommands makes the commands that cobra adds handle a wrong command line like all other commands. By
// default, some of them show their help instead and exit with 0, which hides errors in scripts.
func refineCobraCommands(root *cobra.Command) {
	// Cobra adds these commands only during Execute. Add them now, so that they can be changed.
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		// Without a subcommand for a shell, completion shows its help.
		case "completion":
			cmd.Args = rejectArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = rejectArguments
			}
		// The arguments of help are the path of a command.
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				topic, unknown, err := cmd.Root().Find(args)
				if err != nil {
					return err
				}
				return rejectArguments(topic, unknown)
			}
		}
	}
}
