package facadetest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

type (
	mapChange    = kopf.Change[*corev1.ConfigMap]
	mapAdmission = kopf.Admission[*corev1.ConfigMap]
)

// newAdmissionOperator returns an operator with admission handlers: they set a default, read a quota with the client, wait, and
// deny.
func newAdmissionOperator(settings kopf.Settings) *kopf.Operator {
	op := kopf.New("admitting.example.org", settings)
	maps := kopf.For(op, &corev1.ConfigMap{}).MatchingLabels("!quota")
	maps.Mutate("defaults", func(_ context.Context, a *mapAdmission) error {
		if a.Object.Data["size"] == "" {
			a.Object.Data = map[string]string{"size": "small"}
		}
		return nil
	}, kopf.Operations("CREATE"))
	maps.Validate("quota", func(ctx context.Context, a *mapAdmission) error {
		time.Sleep(time.Second) // other requests continue meanwhile
		var quota corev1.ConfigMap
		if err := a.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "quota"}, &quota); err != nil {
			return err
		}
		if a.Object.Data["size"] == quota.Data["refused"] {
			return kopf.Deny(http.StatusForbidden, "%s is too large", a.Object.Data["size"])
		}
		a.Warning("checked")
		return nil
	}, kopf.Operations("CREATE", "UPDATE"))
	maps.Validate("keep", func(_ context.Context, a *mapAdmission) error {
		if a.Object.Data["size"] == "medium" {
			return kopf.Deny(http.StatusConflict, "it is in use")
		}
		return nil
	}, kopf.Operations("DELETE"))
	maps.OnCreate("made", func(_ context.Context, c *mapChange) error {
		c.SetResult(c.Object.Data["size"])
		return nil
	})
	return op
}

// startAdmitting starts that operator in a cluster with the quota.
func startAdmitting(t testing.TB, server *memapi.Server, settings kopf.Settings) (*facadetest.Runner, client.Client) {
	t.Helper()
	cluster := newUserClient(t, server)
	quota := configMap("quota")
	quota.Labels, quota.Data = map[string]string{"quota": "yes"}, map[string]string{"refused": "huge"}
	if err := cluster.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	r := facadetest.Start(t, newAdmissionOperator(settings), facadetest.Against(memapi.Config(server)))
	r.Ready()
	return r, cluster
}

func TestAdmissionInProcess(t *testing.T) {
	cases := map[string]struct {
		reason   string
		settings kopf.Settings
	}{
		"Nothing": {reason: "admission against the server in memory needs no certificate"},
		"Deployed": {"settings of a deployment open no port and write no Secret or configuration", kopf.Settings{
			Admission: kopf.AdmissionSettings{Managed: "admitting", Service: "system/webhook", Port: 1},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := memapi.New()
				r, cluster := startAdmitting(t, server, tc.settings)
				checkAdmissions(t, r, cluster)
				r.Settle(time.Hour, 24*time.Hour)
				for _, write := range r.Writes() {
					if strings.Contains(write.Path, "webhook") || strings.Contains(write.Path, "secrets") {
						t.Errorf("%s: got the write %s", tc.reason, write)
					}
				}
				if err := r.Stop(); err != nil {
					t.Fatal(err)
				}
				huge := configMap("later")
				huge.Data = map[string]string{"size": "huge"}
				if err := cluster.Create(t.Context(), huge); err != nil {
					t.Errorf("a stopped operator must not review requests: %v", err)
				}
			})
		})
	}
}

// checkAdmissions sends requests that the handlers change, allow and deny.
func checkAdmissions(t *testing.T, r *facadetest.Runner, cluster client.Client) {
	t.Helper()
	one := configMap("one")
	if err := cluster.Create(t.Context(), one); err != nil || one.Data["size"] != "small" {
		t.Fatalf("the answer must have the default: data %v, error %v, calls %v", one.Data, err, r.Calls())
	}
	huge := configMap("huge")
	huge.Data = map[string]string{"size": "huge"}
	err := cluster.Create(t.Context(), huge)
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "denied the request: huge is too large") {
		t.Errorf("the creation must be denied with the code and the message: %v", err)
	}
	for _, size := range []string{"medium", "huge"} {
		time.Sleep(time.Minute) // the operator writes meanwhile; a write during the review would conflict
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			t.Fatal(err)
		}
		one.Data["size"] = size
		if err := cluster.Update(t.Context(), one); (err == nil) != (size == "medium") {
			t.Errorf("only an update to medium must be allowed: the one to %s returned %v", size, err)
		}
	}
	if err := cluster.Delete(t.Context(), one); !apierrors.IsConflict(err) {
		t.Errorf("the deletion must be denied with a conflict: %v", err)
	}
	var denied []string
	for _, call := range r.Calls() {
		if call.Outcome == "failure" || call.Outcome == "denied" {
			denied = append(denied, call.Reason+" "+call.Handler+" "+call.Name)
		}
	}
	if got := strings.Join(denied, ", "); got != "CREATE quota huge, UPDATE quota one, DELETE keep one" {
		t.Errorf("the calls must include denied requests: got %s\n%v", got, r.Calls())
	}
}

func TestAdmissionOfAKilledOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		got := failuresOf(t, func(t testing.TB) {
			first, cluster := startAdmitting(t, server, kopf.Settings{})
			first.Kill()
			err := cluster.Create(t.Context(), configMap("one"))
			if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "failed calling webhook") {
				t.Errorf("the webhooks of a killed operator must fail: %v", err)
			}
			second := facadetest.Start(t, newAdmissionOperator(kopf.Settings{}), facadetest.Against(memapi.Config(server)))
			second.Ready()
			if err := cluster.Create(t.Context(), configMap("one")); err != nil {
				t.Errorf("the next operator must answer: %v", err)
			}
		})
		if got != "" {
			t.Errorf("Kill must not fail the test: %s", got)
		}
	})
}
