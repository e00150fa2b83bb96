package assets

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// The environment variables that Resolve reads.
const (
	// AssetsVariable names a folder with the programs; it comes before everything else.
	AssetsVariable = "KUBEBUILDER_ASSETS"
	// CacheVariable names the folder of the cache; the default is kopf-runtime in the user's cache folder.
	CacheVariable = "KOPF_RUNTIME_CACHE"
)

// Assets is a folder that holds the programs.
type Assets struct {
	// Dir is the absolute path of the folder, the value that KUBEBUILDER_ASSETS takes.
	Dir string
	// IsUserProvided says that the user named the folder: its versions are the user's choice.
	IsUserProvided bool
}

// Path gives the absolute path of one program, such as "kubectl".
func (a Assets) Path(program string) string {
	return filepath.Join(a.Dir, program)
}

// Source makes programs out of something: a download, a build.
type Source interface {
	// Fetch writes as many wanted programs as possible into dir, each under its name. An error explains which ones are
	// missing; the others are used nevertheless.
	Fetch(ctx context.Context, want []Binary, dir string, report *progress.Reporter) error
}

// Options are the settings of Resolve. The zero value is useful.
type Options struct {
	// Extra names programs wanted besides the standard three: ControllerManager.
	Extra []string
	// Progress receives a line whenever something takes more than a moment; nil is silent.
	Progress io.Writer
	// Sources fill the cache, the first that can being used. The default is Download, then Build.
	Sources []Source
}

// Resolve returns a folder that holds every wanted program, and fills the cache first if it has to. Several processes
// may call it at once: one fills, the others wait. Errors say what to do next.
func Resolve(ctx context.Context, o Options) (Assets, error) {
	want, err := wantedBinaries(o.Extra)
	if err != nil {
		return Assets{}, err
	}
	if dir := os.Getenv(AssetsVariable); dir != "" {
		return userFolder(dir, want)
	}
	root, err := cacheRoot()
	if err != nil {
		return Assets{}, err
	}
	c := &cache{root: root, dir: filepath.Join(root, folderName()), report: progress.New(o.Progress)}
	if len(c.missing(want)) == 0 {
		return Assets{Dir: c.dir}, nil
	}
	sources := o.Sources
	if sources == nil {
		sources = []Source{&Download{}, &Build{}}
	}
	if err := c.fill(ctx, want, sources); err != nil {
		return Assets{}, err
	}
	return Assets{Dir: c.dir}, nil
}

// userFolder checks the folder that the user named. Falling back to another one would hide the mistake.
func userFolder(dir string, want []Binary) (Assets, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Assets{}, fmt.Errorf("resolving %s: %w", AssetsVariable, err)
	}
	var missing []string
	for _, b := range want {
		if !executable(filepath.Join(dir, b.Name)) {
			missing = append(missing, b.Name)
		}
	}
	if len(missing) > 0 {
		return Assets{},
			fmt.Errorf("%s is %s, which has no executable %s: name a folder that has, or unset the variable "+
				"to have the programs downloaded or built", AssetsVariable, dir, strings.Join(missing, ", "))
	}
	return Assets{Dir: dir, IsUserProvided: true}, nil
}

func cacheRoot() (string, error) {
	dir := os.Getenv(CacheVariable)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the user's cache folder: %w; %s", err, advice)
		}
		dir = filepath.Join(user, "kopf-runtime")
	}
	dir, err := filepath.Abs(filepath.Join(dir, "controlplane"))
	if err != nil {
		return "", fmt.Errorf("resolving the cache folder: %w", err)
	}
	return dir, nil
}

// folderName returns a folder name for the versions and the platform, so that one cache can serve several checkouts and
// machines.
func folderName() string {
	return strings.Join([]string{KubernetesVersion, EtcdVersion, runtime.GOOS, runtime.GOARCH}, "-")
}

const advice = "set " + CacheVariable + " to a folder that can be written to, or " + AssetsVariable +
	" to a folder with etcd, kube-apiserver and kubectl"
