package facade

import (
	"runtime/debug"
	"strings"
)

// version is the program's own, with those that matter to whoever debugs it.
func version() string {
	const module = "github.com/kopf-runtime/kopf-runtime"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	parts := []string{info.Main.Version}
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			parts = append(parts, "kopf-runtime "+dependency.Version)
		}
	}
	return strings.Join(append(parts, info.GoVersion), ", ")
}
