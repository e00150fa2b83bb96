package controlplane

import (
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// Options are the settings of Start. The zero value is useful.
type Options struct {
	// Progress receives a line whenever something takes more than a moment; nil is silent.
	Progress io.Writer
	// StartTimeout is how long each server may take to become ready; the default is two minutes.
	StartTimeout time.Duration
	// LogDir is an existing folder for the servers' logs, which stay there. By default they go with the control plane;
	// the end of a log is part of the error when a server fails.
	LogDir string
	// AuditLog is a file to which kube-apiserver appends one JSON line per request it has answered, its own requests
	// and health checks left out. None by default.
	AuditLog string
	// AuditLevel is how much of a request is logged: Metadata, Request (with its body) or RequestResponse (with both
	// bodies), which is the default.
	AuditLevel string
	// APIServerFlags and EtcdFlags ("--name=value") come after the built-in ones, and so win over most of them. Feature
	// gates are set by APIServerFlags, too: "--feature-gates=ShardedListAndWatch=true".
	APIServerFlags []string
	EtcdFlags      []string
	// ControllerManager also starts kube-controller-manager, for garbage collection, namespace deletion and service
	// account tokens. Its program must be among the assets: assets.Options.Extra.
	ControllerManager bool
}

// absolute makes the paths independent of the servers' working folder.
func (o Options) absolute() (Options, error) {
	for _, path := range []*string{&o.LogDir, &o.AuditLog} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return o, fmt.Errorf("resolving %s: %w", *path, err)
		}
	}
	return o, nil
}

func (o Options) startTimeout() time.Duration {
	if o.StartTimeout > 0 {
		return o.StartTimeout
	}
	return 2 * time.Minute
}
