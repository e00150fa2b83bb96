package commandline

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// addMetricsFlags adds the flags of the metrics endpoint.
func addMetricsFlags(flags *pflag.FlagSet, m *serving.Metrics) {
	flags.StringVar(
		&m.BindAddress, "metrics-bind-address", "0",
		"serve metrics for Prometheus at this `address`, such as :8080; 0 is off",
	)
	addMetricsSecure(flags, &m.Secure)
	flags.StringVar(
		&m.CertDir, "metrics-cert-dir", "", "the `folder` with tls.crt and tls.key for --metrics-secure; changes are "+
			"read; default: a self-signed certificate",
	)
}

// addMetricsSecure adds the flag that run shares with the commands that prepare the cluster for it.
func addMetricsSecure(flags *pflag.FlagSet, value *bool) {
	flags.BoolVar(
		value, "metrics-secure", false,
		"serve the metrics by HTTPS, to clients whose bearer token may get the path /metrics",
	)
}

// checkMetrics validates the flags. Without the files, the server would use a self-signed certificate.
func checkMetrics(cmd *cobra.Command, m serving.Metrics) error {
	switch {
	case m.Secure && m.IsOff():
		return asUsageError(cmd, errors.New("--metrics-secure: the metrics are off: set --metrics-bind-address"))
	case m.CertDir == "":
		return nil
	case !m.Secure:
		return asUsageError(cmd, errors.New("--metrics-cert-dir: the metrics are served without TLS: add "+
			"--metrics-secure"))
	}
	_, err := tls.LoadX509KeyPair(filepath.Join(m.CertDir, "tls.crt"), filepath.Join(m.CertDir, "tls.key"))
	if err != nil {
		return asUsageError(cmd, fmt.Errorf("--metrics-cert-dir: %w", err))
	}
	return nil
}

// needsFlags are those flags of the operator that change its needs in a cluster, for commands that do not run it.
type needsFlags struct {
	peering       peeringFlags // only --peering
	election      electionFlags
	metricsSecure bool // --metrics-secure
}

// addFlags adds the flags.
func (n *needsFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&n.peering.name, "peering", "P", "", "the `name` of the peering object that the operator requires")
	n.election.addFlags(cmd)
	addMetricsSecure(flags, &n.metricsSecure)
}

// checkFlags validates the flags as the operator does.
func (n *needsFlags) checkFlags(cmd *cobra.Command) error {
	return cmp.Or(checkPeering(cmd, n.peering.name), n.election.checkFlags(cmd, &n.peering))
}

// values returns the flags with which the operator will run.
func (n *needsFlags) values(of scope) serving.RunFlags {
	return serving.RunFlags{
		Namespaces: of.namespaces, HasScope: of.isGiven(), Peering: serving.PeeringFlags{Name: n.peering.name},
		Election: n.election.ElectionFlags, Metrics: serving.Metrics{Secure: n.metricsSecure},
	}
}
