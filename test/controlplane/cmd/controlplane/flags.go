package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// settings holds the values of the flags.
type settings struct {
	assetOptions        assets.Options
	controlPlaneOptions controlplane.Options
}

// parse reads a command's flags; the remaining arguments are returned. The head is the introduction of the help.
func parse(name, head string, args []string, stderr io.Writer, servers bool) (settings, []string, error) {
	var s settings
	var quiet, manager bool
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(stderr, "%s\nFlags:\n", head)
		flags.PrintDefaults()
	}
	flags.BoolVar(&quiet, "quiet", false, "do not report waits")
	flags.BoolVar(&manager, "controller-manager", false, "also kube-controller-manager: garbage collection, namespace "+
		"deletion, service account tokens; it is not part of the download, and its build takes some minutes")
	if servers {
		flags.StringVar(
			&s.controlPlaneOptions.AuditLog, "audit-log", "",
			"append one JSON line per answered request to this `file`",
		)
		flags.StringVar(&s.controlPlaneOptions.AuditLevel, "audit-level", "",
			"how much is logged: Metadata, Request or RequestResponse "+
				"(the default)")
		flags.StringVar(&s.controlPlaneOptions.LogDir, "log-dir", "",
			"keep the servers' logs in this existing `folder`")
		flags.DurationVar(&s.controlPlaneOptions.StartTimeout, "start-timeout", 0,
			"how long each server may take to become ready "+
				"(default 2m)")
		flags.Func("feature-gates", "`gates` of kube-apiserver to set, such as ShardedListAndWatch=true; "+
			"separate several by commas", func(gates string) error {
			s.controlPlaneOptions.APIServerFlags = append(
				s.controlPlaneOptions.APIServerFlags, "--feature-gates="+gates,
			)
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, nil, err
		}
		return s, nil, codeError(2) // the flag package has printed the error
	}
	if !quiet {
		s.assetOptions.Progress, s.controlPlaneOptions.Progress = stderr, stderr
	}
	if manager {
		s.assetOptions.Extra, s.controlPlaneOptions.ControllerManager = []string{assets.ControllerManager}, true
	}
	return s, flags.Args(), nil
}

// startServers gets the programs and starts the servers.
func (s settings) startServers(ctx context.Context) (assets.Assets, *controlplane.ControlPlane, error) {
	found, err := assets.Resolve(ctx, s.assetOptions)
	if err != nil {
		return found, nil, err
	}
	c, err := controlplane.Start(ctx, found, s.controlPlaneOptions)
	return found, c, err
}
