package commandline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/controls"
)

// objectCommand is the common part of the commands that control the handling of one object.
type objectCommand struct {
	base   baseCommand
	object namedObject

	all      bool          // --all of retry-object
	wait     bool          // --wait of retry-object
	timeout  time.Duration // --timeout of retry-object
	deletion bool          // --deletion of pause-object
}

// newObjectCommand returns a command that does something with one object.
func newObjectCommand(
	p Program, cmd *cobra.Command, flags func(c *objectCommand, flags *pflag.FlagSet),
	act func(c *objectCommand, cmd *cobra.Command, o *clusterops.ControlledObject) error,
) *cobra.Command {
	name, _, _ := strings.Cut(cmd.Use, " ")
	c := &objectCommand{base: newBase(p, name)}
	cmd.Args = checkObjectArguments
	cmd.Long += " The command uses the cluster and the permissions of your kubeconfig, which must allow to get and " +
		"to patch the object."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := c.findObject(cmd, args)
		if err != nil {
			return err
		}
		return act(c, cmd, o)
	}
	c.base.addClusterFlags(cmd.Flags())
	c.object.addFlags(cmd.Flags())
	if flags != nil {
		flags(c, cmd.Flags())
	}
	c.base.finishFlags(cmd)
	return cmd
}

// retryCommand returns the command that runs the handlers of an object again.
func retryCommand(p Program) *cobra.Command {
	return newObjectCommand(p, &cobra.Command{
		Use: "retry-object KIND [NAMESPACE/]NAME", Short: "Run the handlers of one object again",
		Long: "Run the handlers of one object again that have failed permanently in its last change, or that wait " +
			"for their next attempt. With --all, the object is handled as a new one: its handlers of creations and " +
			"of fields are called.",
		Example: retryExamples,
	}, func(c *objectCommand, flags *pflag.FlagSet) {
		flags.BoolVar(&c.all, "all", false, "call also the handlers that have succeeded")
		flags.BoolVar(&c.wait, "wait", false, "wait until the handlers have finished; failures are errors")
		flags.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long to wait, as a `duration` such as 10m")
	}, (*objectCommand).retryObject)
}

// pauseCommand returns the command that pauses an object.
func pauseCommand(p Program) *cobra.Command {
	return newObjectCommand(p, &cobra.Command{
		Use: "pause-object KIND [NAMESPACE/]NAME", Short: "Pause the handling of one object",
		Long: "Pause the handling of one object: its handlers are not called, and its daemons and timers stop, until " +
			"the command resume-object. Its deletion is handled nevertheless, unless --deletion is given. To pause " +
			"whole operators, see the command freeze.",
		Example: pauseExamples,
	}, func(c *objectCommand, flags *pflag.FlagSet) {
		flags.BoolVar(
			&c.deletion, "deletion", false, "pause the deletion as well: the object stays until it is resumed",
		)
	}, (*objectCommand).pauseObject)
}

// resumeObjectCommand returns the command that ends the pause of an object.
func resumeObjectCommand(p Program) *cobra.Command {
	return newObjectCommand(p, &cobra.Command{
		Use: "resume-object KIND [NAMESPACE/]NAME", Short: "End the pause of one object",
		Long:    "End the pause of one object by the command pause-object. Changes in the meantime are handled then.",
		Example: resumeObjectExamples,
	}, nil, (*objectCommand).resumeObject)
}

// findObject finds the object in the cluster.
func (c *objectCommand) findObject(cmd *cobra.Command, args []string) (*clusterops.ControlledObject, error) {
	settings, config, err := c.base.connect(cmd, c.object.readName(args))
	if err != nil {
		return nil, err
	}
	return clusterops.FindObject(cmd.Context(), config, clusterops.ObjectLookup{
		Kind: c.object.kind, Namespace: c.object.namespace, Name: c.object.name, Prefix: settings.AnnotationPrefix,
		Operator: c.base.program.Name,
	})
}

// retryObject requests another run, and waits for it on demand.
func (c *objectCommand) retryObject(cmd *cobra.Command, o *clusterops.ControlledObject) error {
	mode, called := controls.Failed, "the handlers that have not succeeded"
	if c.all {
		mode, called = controls.All, "all handlers, as for a new object"
	}
	if o.IsBeingDeleted() {
		called += ", for its deletion"
	}
	// The time makes the token different from that of each other request.
	request := controls.NewRequest(mode, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	if err := o.Request(cmd.Context(), request); err != nil {
		return err
	}
	if o.IsPaused() {
		cmd.Printf("%s is paused: after resume-object, the operator calls %s\n", o, called)
	} else {
		cmd.Printf("%s: the operator calls %s\n", o, called)
	}
	if !c.wait {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), c.timeout, fmt.Errorf("%s are over", c.timeout))
	defer cancel()
	failed, err := o.AwaitAnswer(ctx, request, func(state string) { cmd.Printf("%s: %s\n", o, state) })
	switch {
	case err != nil:
		return err
	case len(failed) > 0:
		return errors.New("handlers have failed permanently: " + strings.Join(failed, "; "))
	default:
		cmd.Printf("%s: the handlers have finished\n", o)
		return nil
	}
}

// pauseObject pauses the object.
func (c *objectCommand) pauseObject(cmd *cobra.Command, o *clusterops.ControlledObject) error {
	value, deletion := controls.PauseValue, "its deletion is handled nevertheless"
	if c.deletion {
		value, deletion = controls.PauseDeletionValue, "its deletion waits as well"
	}
	if err := o.Pause(cmd.Context(), value); err != nil {
		return err
	}
	cmd.Printf("%s is paused: handlers that are running finish, others wait for resume-object; %s\n", o, deletion)
	return nil
}

// resumeObject ends the pause.
func (c *objectCommand) resumeObject(cmd *cobra.Command, o *clusterops.ControlledObject) error {
	had, err := o.Resume(cmd.Context())
	switch {
	case err != nil:
		return err
	case !had:
		cmd.Printf("%s was not paused\n", o)
	default:
		cmd.Printf("%s is not paused any more: the operator handles what has changed\n", o)
	}
	return nil
}

// namedObject is the object that a command is about, with the arguments KIND and [NAMESPACE/]NAME.
type namedObject struct{ kind, namespace, name string }

// addFlags adds the flag of the namespace.
func (o *namedObject) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the object, if not before its name")
}

// checkObjectArguments checks the arguments KIND and [NAMESPACE/]NAME.
func checkObjectArguments(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return asUsageError(cmd, fmt.Errorf("%d arguments are given: it needs a kind and a name, such as %q",
			len(args), "widget default/my-widget"))
	}
	// A slash with an empty part before or after it is more likely an error than a name.
	if namespace, name, both := strings.Cut(args[1], "/"); both && (namespace == "" || name == "") {
		return asUsageError(cmd, fmt.Errorf("%q is neither NAME nor NAMESPACE/NAME", args[1]))
	}
	return nil
}

// readName returns a function that reads the checked arguments. The namespace can be given twice, in the flag and in
// the argument, but then both must agree.
func (o *namedObject) readName(args []string) func(cmd *cobra.Command) error {
	return func(cmd *cobra.Command) error {
		o.kind, o.name = args[0], args[1]
		namespace, name, both := strings.Cut(o.name, "/")
		switch {
		case both && o.namespace != "" && o.namespace != namespace:
			return asUsageError(cmd, fmt.Errorf("there are two namespaces: %s and %s", o.namespace, namespace))
		case both:
			o.namespace, o.name = namespace, name
		}
		return nil
	}
}
