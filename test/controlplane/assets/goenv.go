package assets

import (
	"os"
	"runtime"
	"slices"
	"strings"
)

// overriddenVariables lists the variables with which a caller steers its own build. Here they would build another
// program, for another machine, or fail on a go.mod that is not theirs.
var overriddenVariables = []string{"GOFLAGS", "GOWORK", "GOOS", "GOARCH", "CGO_ENABLED", "GO111MODULE", "GOBIN",
	AssetsVariable}

// allowedFlags lists the flags in GOFLAGS that change how a build runs and not what comes out.
var allowedFlags = []string{"-p", "-modcacherw", "-a", "-v", "-x"}

// goEnvironment returns the caller's environment for running the Go command on a foreign module. Proxies, caches,
// toolchain choice and credentials stay the caller's. The folder dir is where the command is to run, and where it keeps
// its temporary files, which go when the folder goes, even if the command is killed.
func goEnvironment(dir string) []string {
	env := slices.DeleteFunc(os.Environ(), func(assignment string) bool {
		name, _, _ := strings.Cut(assignment, "=")
		return slices.Contains(overriddenVariables, name)
	})
	return append(env, "GOFLAGS="+goFlags(os.Getenv("GOFLAGS")), "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+dir, "PWD="+dir)
}

// goFlags is never empty: an empty variable would let a value through that "go env -w" has stored.
func goFlags(flags string) string {
	kept := []string{"-buildvcs=false"}
	for _, flag := range strings.Fields(flags) {
		name, _, _ := strings.Cut("-"+strings.TrimLeft(flag, "-"), "=")
		if slices.Contains(allowedFlags, name) {
			kept = append(kept, flag)
		}
	}
	return strings.Join(kept, " ")
}
