package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
)

func TestStartFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		etcd   string // the script that stands in for etcd; none if empty
		limit  time.Duration
		cancel bool
		want   []string
	}{
		"no program": {
			reason: "a missing program is named",
			want:   []string{"etcd", "no such file"},
		},
		"ends": {
			reason: "the log of a server that gives up is part of the error",
			etcd:   "echo starting; echo 'the disk is full' >&2; exit 4",
			want:   []string{"etcd ended by itself", "exit status 4", "the disk is full"},
		},
		"never ready": {
			reason: "a server that does not become ready is given up",
			etcd:   "echo thinking; sleep 1000",
			limit:  3 * time.Second, // enough for a shell to say something
			want:   []string{"waiting for etcd", "not ready in", "etcd.sock", "thinking"},
		},
		"cancelled": {
			reason: "a start can be given up",
			cancel: true,
			etcd:   "sleep 1000",
			want:   []string{"waiting for etcd", errGivenUp.Error()},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			dir := t.TempDir()
			if tc.etcd != "" {
				program(t, filepath.Join(dir, "etcd"), "#!/bin/sh\n"+tc.etcd+"\n")
			}
			o := controlplane.Options{StartTimeout: tc.limit}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cancel {
				cancel(errGivenUp)
			}
			_, err := controlplane.Start(ctx, assets.Assets{Dir: dir}, o)
			if err == nil {
				t.Fatalf("%s: got no error", tc.reason)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: the error lacks %q: %v", tc.reason, part, err)
				}
			}
			if left, _ := os.ReadDir(temporary); len(left) > 0 {
				t.Errorf("%s: left behind: %v", tc.reason, left)
			}
		})
	}
}

var errGivenUp = errors.New("given up")
