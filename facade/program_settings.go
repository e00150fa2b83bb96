package kopf

import (
	"log/slog"
	"reflect"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/defaults"
)

// programOnly are the mistakes of settings that only a program of its own can have: one that [Main] runs.
func (s *Settings) programOnly() []error {
	return append(s.Admission.rules().CheckProgramOnly(), defaults.Problems(
		defaults.ProgramOnly("UltimateExitingTimeout", s.UltimateExitingTimeout != 0, "the process is the project's"),
		defaults.ProgramOnly("CachedReads", len(s.CachedReads) > 0,
			"the client is the manager's: say there what it reads from its cache"),
		defaults.ProgramOnly("LogHandler", s.LogHandler != nil,
			"give logr.FromSlogHandler(handler) to the manager as its Logger"),
		defaults.ProgramOnly("Networking.ConnectTimeout", s.Networking.ConnectTimeout != 0,
			"set Dial in the rest.Config of the manager"),
		defaults.ProgramOnly("Networking.TrustEnv", s.Networking.TrustEnv,
			"set Proxy in the rest.Config of the manager"),
		defaults.ProgramOnly("Watching.ConnectTimeout", s.Watching.ConnectTimeout != 0,
			"set Dial in the rest.Config of the manager"),
	)...)
}

// sameHandler tells whether it is the same handler, as far as handlers can be compared.
func sameHandler(one, other slog.Handler) bool {
	a, b := reflect.ValueOf(one), reflect.ValueOf(other)
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	return !a.IsValid() || !a.Comparable() || !b.Comparable() || one == other
}
