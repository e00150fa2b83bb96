package kopf_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// TestGeneratedGracePeriods shows that the grace period of a generated Deployment is longer than the exit of its
// program with these settings, rounded up to five seconds.
func TestGeneratedGracePeriods(t *testing.T) {
	withoutCluster(t)
	cluster := serve(t, widgetsOnly())
	queueing := func(exit time.Duration) kopf.QueueingSettings { return kopf.QueueingSettings{ExitTimeout: exit} }
	for name, tc := range map[string]struct {
		reason   string
		settings kopf.Settings
		seconds  int
	}{
		"Default": {"handlers have 2 seconds and 30 more, and the cleanup 30 seconds and 5 more", kopf.Settings{}, 75},
		"Immediate": {"handlers can be interrupted at once",
			kopf.Settings{Queueing: queueing(kopf.Immediately)}, 70},
		"Handlers": {"the time of handlers counts", kopf.Settings{Queueing: queueing(time.Minute)}, 130},
		"Cleanup":  {"the time of the cleanup counts", kopf.Settings{CleanupTimeout: time.Minute}, 105},
		"Endless": {"the limit of the exit counts for a cleanup without one",
			kopf.Settings{CleanupTimeout: kopf.Never}, 605},
		"EndlessLonger": {"a longer limit of the exit counts for a cleanup without one",
			kopf.Settings{CleanupTimeout: kopf.Never, UltimateExitingTimeout: 20 * time.Minute}, 1205},
		"Unlimited": {"without any limit, the cleanup has ten minutes",
			kopf.Settings{CleanupTimeout: kopf.Never, UltimateExitingTimeout: kopf.Never}, 645},
		"Limited": {"the exit does not take longer than its limit",
			kopf.Settings{UltimateExitingTimeout: 20 * time.Second}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			tc.settings.AddToScheme = runtime.SchemeBuilder{addWidgets}
			op := kopf.New("test.example.org", tc.settings)
			kopf.For(op, &Widget{}).OnCreate("fn", succeed)
			code, out, errs := execute(t, op, "manifests", "-A", "--only", "deployment", "--kubeconfig", cluster)
			want := fmt.Sprintf("terminationGracePeriodSeconds: %d\n", tc.seconds)
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: want %q, got exit code %d\n%s\n%s", tc.reason, want, code, out, errs)
			}
		})
	}
}
