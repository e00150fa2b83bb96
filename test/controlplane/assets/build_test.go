package assets_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

// fakeGo stands in for the Go command: it notes how it was called and makes the program that was asked for.
const fakeGo = `
echo "args $*" >>"$NOTES"
env | grep -E '^(GO|CGO)' | sort >>"$NOTES"
grep -E '^module' go.mod >>"$NOTES"
[ -s go.sum ] || exit 98
while [ "$1" != -o ]; do shift; done
if [ "$(basename "$2")" = "$BROKEN" ]; then echo "go: downloading"; echo "undefined: x" >&2; exit 1; fi
cp "$PROGRAMS/$(basename "$2")" "$2"
`

func prepareGo(t *testing.T) (notes string) {
	t.Helper()
	t.Setenv(assets.CacheVariable, t.TempDir())
	t.Setenv(assets.AssetsVariable, "")
	made := t.TempDir()
	programs(t, made)
	script(t, made, assets.ControllerManager, answer(assets.ControllerManager, assets.KubernetesVersion))
	bin := t.TempDir()
	shell(t, bin, "go", fakeGo)
	notes = filepath.Join(t.TempDir(), "notes")
	t.Setenv("PROGRAMS", made)
	t.Setenv("NOTES", notes)
	t.Setenv("BROKEN", "")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return notes
}

func TestBuildFails(t *testing.T) {
	prepareGo(t)
	t.Setenv("BROKEN", "kubectl")
	_, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{&assets.Build{}}})
	wantError(t, "a failed build shows what the compiler said", err, []string{"building kubectl", "undefined: x"})
}

func TestBuildWithoutGo(t *testing.T) {
	prepareGo(t)
	t.Setenv("PATH", t.TempDir())
	_, err := assets.Resolve(t.Context(), assets.Options{Sources: []assets.Source{&assets.Build{}}})
	wantError(t, "without Go there is nothing to build with", err, []string{"install Go", assets.AssetsVariable})
}

func TestBuildIgnoresCallersBuild(t *testing.T) {
	notes := prepareGo(t)
	t.Setenv("GOFLAGS", "-mod=mod -race --p=1 -tags=odd -modfile=/nowhere")
	t.Setenv("GOWORK", "/nowhere/go.work")
	t.Setenv("GOOS", "plan9")
	t.Setenv("GOPROXY", "https://proxy.example.org")
	var said bytes.Buffer
	o := assets.Options{
		Extra: []string{assets.ControllerManager}, Progress: &said, Sources: []assets.Source{&assets.Build{}},
	}
	if _, err := assets.Resolve(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for part, times := range map[string]int{
		"args build -mod=readonly":                    4,
		"GOFLAGS=-buildvcs=false --p=1\n":             4, // how many run at once is the caller's business
		"GOWORK=off\n":                                4,
		"CGO_ENABLED=0\n":                             4,
		"GOOS=plan9":                                  0,
		"GOPROXY=https://proxy.example.org\n":         4, // the source of the modules
		"module build.local/etcd":                     1,
		"module build.local/kubernetes":               3,
		"gitVersion=v" + assets.KubernetesVersion:     6, // the server's and the client's, three times
		"k8s.io/kubernetes/cmd/kube-apiserver\n":      1,
		"k8s.io/kubernetes/cmd/kubectl\n":             1,
		"k8s.io/kubernetes/cmd/" + "kube-controller-": 1,
		"go.etcd.io/etcd/server/v3\n":                 1,
	} {
		if n := strings.Count(got, part); n != times {
			t.Errorf("%q was passed %d times, want %d:\n%s", part, n, times, got)
		}
	}
	if !strings.Contains(said.String(), "built kube-apiserver v"+assets.KubernetesVersion) {
		t.Errorf("the end of a build is reported: %q", said.String())
	}
}

func TestBuildsArePinned(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   string
	}{
		"etcd.mod": {
			reason: "the etcd build pins the version of the package",
			want:   "require go.etcd.io/etcd/server/v3 v" + assets.EtcdVersion + "\n",
		},
		"kubernetes.mod": {
			reason: "the Kubernetes build pins the version of the package",
			want:   "require k8s.io/kubernetes v" + assets.KubernetesVersion + "\n",
		},
		"etcd.sum": {
			reason: "the sums cover the program itself",
			want:   "go.etcd.io/etcd/server/v3 v" + assets.EtcdVersion + " h1:",
		},
		"kubernetes.sum": {
			reason: "the sums cover the program itself",
			want:   "k8s.io/kubernetes v" + assets.KubernetesVersion + " h1:",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("modules", name))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), tc.want) {
				t.Errorf("%s: %s lacks %q; run go generate", tc.reason, name, tc.want)
			}
		})
	}
}
