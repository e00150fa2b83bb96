package assets_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

func TestDownload(t *testing.T) {
	cases := map[string]struct {
		reason     string
		status     int
		command    string // what stands in for the Go command; $STORE is the folder that setup-envtest writes to
		wantOutput string
	}{
		"no access": {
			reason:     "a machine without access falls back in one line, and does not even build the tool",
			status:     http.StatusNotFound,
			command:    "exit 99",
			wantOutput: "404 Not Found",
		},
		"tool fails": {
			reason:     "a failure of the tool is one line as well",
			status:     http.StatusOK,
			command:    "echo unable to find a version >&2; exit 2",
			wantOutput: "unable to find a version",
		},
		"odd answer": {
			reason:     "an answer that is no folder is not used as one",
			status:     http.StatusOK,
			command:    "echo done",
			wantOutput: `"done" is not a folder`,
		},
		"incomplete": {
			reason:     "a download that lacks a program is not enough",
			status:     http.StatusOK,
			command:    `mkdir "$STORE/k8s"; cp "$PROGRAMS/etcd" "$STORE/k8s"; echo "$STORE/k8s"`,
			wantOutput: "taking kube-apiserver out of the download",
		},
		"succeeds": {
			reason:  "downloaded programs are used without asking other sources",
			status:  http.StatusOK,
			command: `mkdir "$STORE/k8s"; cp "$PROGRAMS"/* "$STORE/k8s"; echo "$STORE/k8s"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(assets.CacheVariable, t.TempDir())
			t.Setenv(assets.AssetsVariable, "")
			index := httptest.NewServer(
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }),
			)
			defer index.Close()
			made := t.TempDir()
			programs(t, made)
			t.Setenv("PROGRAMS", made)
			bin := t.TempDir()
			shell(t, bin, "go", `while [ "$1" != --bin-dir ]; do shift; done; STORE=$2`+"\n"+tc.command)
			t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

			var said bytes.Buffer
			next := &factory{t: t}
			o := assets.Options{Progress: &said, Sources: []assets.Source{&assets.Download{Index: index.URL}, next}}
			if _, err := assets.Resolve(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			failed := tc.wantOutput != ""
			if asked := next.fetches.Load() > 0; asked != failed {
				t.Errorf("%s: the next source was asked: %t", tc.reason, asked)
			}
			if !strings.Contains(said.String(), tc.wantOutput) || failed && strings.Count(said.String(), "\n") != 1 {
				t.Errorf("%s: want one line with %q, got %q", tc.reason, tc.wantOutput, said.String())
			}
		})
	}
}

func TestDownloadHasNoExtra(t *testing.T) {
	isolate(t)
	o := assets.Options{
		Extra:   []string{assets.ControllerManager},
		Sources: []assets.Source{&assets.Download{Index: "http://127.0.0.1:1"}, &factory{t: t}},
	}
	var said bytes.Buffer
	o.Progress = &said
	if _, err := assets.Resolve(t.Context(), o); err != nil || said.Len() > 0 {
		t.Errorf("what no download has is not looked for there: got %v and %q", err, said.String())
	}
}
