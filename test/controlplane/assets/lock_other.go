//go:build !unix || aix || solaris

package assets

import (
	"context"
	"errors"
	"runtime"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// lock fails: kube-apiserver does not run here either, so only a folder that was given can serve.
func lock(context.Context, string, *progress.Reporter) (func(), error) {
	return nil, errors.New("not supported on " + runtime.GOOS)
}
