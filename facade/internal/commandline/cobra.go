package commandline

import "github.com/spf13/cobra"

// refineCommandsOfCobra has the commands that cobra adds treat a wrong command line as all others do. On their own,
// some of them show a help instead, and exit with 0.
func refineCommandsOfCobra(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Args = noArguments
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		case "help":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				topic, unknown, err := cmd.Root().Find(args)
				if err != nil {
					return err
				}
				return noArguments(topic, unknown)
			}
		}
	}
}
