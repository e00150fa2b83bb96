package commandline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// electionFlags are the flags of the leader election.
type electionFlags struct{ serving.ElectionFlags }

// addFlags adds the flags. Without a value, --leader-elect is true, as in other controllers.
func (e *electionFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(
		&e.Mode, "leader-elect", serving.ElectAuto,
		"a `mode`: true lets a Lease decide which replica acts, false does not; auto does so in a pod, unless "+
			"there is a peering object",
	)
	flags.Lookup("leader-elect").NoOptDefVal = serving.ElectAlways
	e.addID(flags)
	flags.IntVar(
		&e.Shards, "shards", 0,
		"let the replicas share the objects, in this `number` of ranges; default: the operator's settings",
	)
}

// addID adds the flag that names the Lease.
func (e *electionFlags) addID(flags *pflag.FlagSet) {
	flags.StringVar(
		&e.ID, "leader-elect-id", "",
		"the `name` of the Lease of the operator; default: its own name, with a digest of its namespaces",
	)
}

// checkFlags validates the flags.
func (e *electionFlags) checkFlags(cmd *cobra.Command, peers *peeringFlags) error {
	if e.Shards < 0 || e.Shards > defaults.MaxShards {
		return asUsageError(cmd, fmt.Errorf("--shards=%d: it is a number from 1 to %d, or 0 for the settings",
			e.Shards, defaults.MaxShards))
	}
	switch e.Mode {
	case serving.ElectAuto, serving.ElectNever:
	case serving.ElectAlways:
		if peers.standalone || peers.name != "" {
			return asUsageError(cmd, fmt.Errorf("--leader-elect=true excludes --standalone and --peering: a replica "+
				"acts alone, by its peers, or by a Lease"))
		}
		if e.Shards > 0 {
			return asUsageError(cmd, errors.New("--leader-elect=true excludes --shards: one replica acts, or all of "+
				"them share the objects"))
		}
	default:
		return asUsageError(cmd, fmt.Errorf("--leader-elect=%s: it is auto, true or false", e.Mode))
	}
	return e.checkID(cmd)
}

// checkID validates the name of the Lease.
func (e *electionFlags) checkID(cmd *cobra.Command) error {
	if e.ID == "" {
		return nil
	}
	if invalid := validation.IsDNS1123Subdomain(e.ID); len(invalid) > 0 {
		return asUsageError(cmd, fmt.Errorf("--leader-elect-id: %q cannot be the name of a Lease: %s", e.ID,
			invalid[0]))
	}
	return nil
}

// values returns the values. A developer's operator, with --dev, does not wait for a Lease by itself.
func (e *electionFlags) values(peers *peeringFlags) serving.ElectionFlags {
	given := e.ElectionFlags
	if given.Mode == serving.ElectAuto && peers.usesDevPriority {
		given.Mode = serving.ElectNever
	}
	return given
}
