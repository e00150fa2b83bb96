package progress_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

func TestWaiting(t *testing.T) {
	cases := map[string]struct {
		reason   string
		note     string
		duration time.Duration
		want     string
	}{
		"short": {
			reason:   "a wait that ends within a second is not worth a line",
			duration: 900 * time.Millisecond,
		},
		"noticed": {
			reason:   "a wait of more than a second prints a line",
			duration: 2 * time.Second,
			want:     "controlplane: building it …\n",
		},
		"long": {
			reason:   "a long wait shows every ten seconds that it is alive",
			note:     "about a minute",
			duration: 21 * time.Second,
			want: "controlplane: building it (about a minute)\n" +
				"controlplane: building it (10s, about a minute)\n" +
				"controlplane: building it (20s, about a minute)\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				done := progress.New(&out).Waiting("building it", tc.note)
				time.Sleep(tc.duration)
				done()
				done()
				if got := out.String(); got != tc.want {
					t.Errorf("%s:\nwant %q\n got %q", tc.reason, tc.want, got)
				}
			})
		})
	}
}

func TestNilReporterIsSilent(t *testing.T) {
	r := progress.New(nil)
	r.Say("nobody listens")
	r.Waiting("nobody listens", "")()
}
