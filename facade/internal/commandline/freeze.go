package commandline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/logging"
	"github.com/kopf-runtime/kopf-runtime/peering"
)

// freezePriority is the default priority of a freeze. Kopf has the same default.
const freezePriority = 100

// freezer is the command that pauses or resumes operators.
type freezer struct {
	base            baseCommand
	isFreeze        bool     // false for resume
	peering         string   // --peering
	identity        string   // --id; empty means the default
	priority        number   // --priority
	lifetime        lifetime // --lifetime; zero for resume
	message         string   // --message
	usesDevPriority bool     // takes devPriority instead of priority
}

// freezeCommand returns the command that pauses operators. Kopf: kopf freeze.
func freezeCommand(p Program) *cobra.Command {
	f := &freezer{base: newBase(p, "freeze"), isFreeze: true, priority: freezePriority}
	cmd := &cobra.Command{
		Use: "freeze", Short: "Pause operators for some time",
		Long: "Pause operators: this one, and all that share its peering object and have the same priority or a " +
			"lower one, also those of other programs. They continue when the time is over, or with the command " +
			"resume. The command uses the cluster and the permissions of your kubeconfig.",
		Example: freezeExamples,
		RunE:    f.writeRecord,
	}
	flags := cmd.Flags()
	f.addFlags(cmd)
	flags.VarP(&f.lifetime, "lifetime", "t", "for how many `seconds`, or for what time, such as 10m; required")
	flags.VarP(&f.priority, "priority", "p", "the `number` up to which operators pause")
	flags.BoolVar(&f.usesDevPriority, "dev", false, "take the priority 666, as that of operators with --dev")
	flags.StringVarP(&f.message, "message", "m", "", "why, as a `text` for the log of this command only")
	f.base.finishFlags(cmd)
	return cmd
}

// resumeCommand returns the command that resumes operators. Kopf: kopf resume.
func resumeCommand(p Program) *cobra.Command {
	f := &freezer{base: newBase(p, "resume")}
	cmd := &cobra.Command{
		Use: "resume", Short: "Resume paused operators",
		Long: "Resume operators that were paused by the command freeze, also that of Kopf, by the same user on the " +
			"same machine, or with the same --id.",
		Example: resumeExamples,
		RunE:    f.writeRecord,
	}
	f.addFlags(cmd)
	f.base.finishFlags(cmd)
	return cmd
}

// addFlags adds the flags of both commands.
func (f *freezer) addFlags(cmd *cobra.Command) {
	f.base.addFlags(cmd, "the peering object of this `namespace`", "the peering object of the whole cluster")
	cmd.Flags().StringVarP(
		&f.peering, "peering", "P", "", "the `name` of the peering object, such as default; required",
	)
	cmd.Flags().StringVarP(
		&f.identity, "id", "i", "", "whose record it is, as a `text`; default: $POD_ID, or user@host",
	)
}

// checkFlags validates the flags of both commands.
func (f *freezer) checkFlags(cmd *cobra.Command) error {
	// Kopf requires the name as well: a default could pause unrelated operators.
	if f.peering == "" {
		return asUsageError(cmd, errors.New(
			"-P (--peering) is missing: the name of the peering object that the operators share, such as default",
		))
	}
	// A freeze without an end could be forgotten, so there is no default.
	if f.isFreeze && f.lifetime == 0 {
		return asUsageError(cmd, errors.New(
			"-t (--lifetime) is missing: for how many seconds operators pause, unless resume comes first",
		))
	}
	return checkPeering(cmd, f.peering)
}

// writeRecord writes or removes the record in all selected peering objects.
func (f *freezer) writeRecord(cmd *cobra.Command, _ []string) error {
	// The settings determine the default scope and the connection.
	settings, log, err := f.base.prepareWithLog(cmd, f.checkFlags)
	if err != nil {
		return err
	}
	// Without flags, the command means the same namespaces as the operator. None means the cluster-scoped object.
	meant, said := f.base.scope.choosePatterns(settings.Patterns)
	// Kopf warns in the same case.
	if !said {
		logging.Warn(log, "Neither -n nor -A is given: the peering of the whole cluster is meant. Say -A to confirm "+
			"that, or -n to choose namespaces")
	}
	config, err := f.base.logIn(settings)
	if err != nil {
		return err
	}
	// As in Kopf, the message is not stored. It is only logged here.
	if f.message != "" {
		log = log.WithValues("reason", f.message)
	}
	// Package clusterops takes its logger from the context.
	ctx := logf.IntoContext(cmd.Context(), log.WithName(f.base.program.Name))
	order := clusterops.FreezeOrder{
		Peering: f.peering, Namespaces: meant, Identity: f.recordIdentity(ctx), Record: f.newRecord(),
	}
	if err := order.CarryOut(ctx, config); err != nil {
		return fmt.Errorf("%s of peering %q: %w", cmd.Name(), f.peering, err)
	}
	return nil
}

// recordIdentity returns the identity of the record. A resume must use the same identity as the freeze. So the default
// is $POD_ID, or user and host.
func (f *freezer) recordIdentity(ctx context.Context) string {
	if f.identity != "" {
		return f.identity
	}
	return peering.OperatorIdentity(os.Getenv("POD_ID"), peering.CurrentProcess(ctx), true)
}

// newRecord returns the record to write. For a resume, it has no lifetime, which removes the record. It has no runtime,
// because this command cannot be elected to act.
func (f *freezer) newRecord() peering.PeerRecord {
	priority := int(f.priority)
	if f.usesDevPriority {
		priority = devPriority
	}
	return peering.PeerRecord{Priority: priority, Lifetime: time.Duration(f.lifetime)}
}
