package diff_test

import (
	"testing"

	"sigs.k8s.io/json"

	"github.com/kopf-runtime/kopf-runtime/storage/diff"
)

// deployment is an essence of a usual size, about 2 KiB.
const deployment = `{
 "metadata": {"labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-eu", "tier": "prod",
   "team": "checkout"},
  "annotations": {"example.org/contact": "checkout@example.org",
   "example.org/runbook": "https://runbooks.example.org/shop"}},
 "spec": {"replicas": 3, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "paused": false,
  "selector": {"matchLabels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-eu"}},
  "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
  "template": {"metadata": {"labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/instance": "shop-eu",
    "tier": "prod"}},
   "spec": {"serviceAccountName": "shop", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
     {"name": "web", "image": "registry.example.org/shop/web:1.24.3", "imagePullPolicy": "IfNotPresent",
      "env": [{"name": "PORT", "value": "8080"}, {"name": "LOG_LEVEL", "value": "info"},
       {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "shop-db", "key": "password"}}}],
      "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"},
       {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
      "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
      "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "failureThreshold": 3},
      "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5, "failureThreshold": 2},
      "volumeMounts": [{"name": "config", "mountPath": "/etc/shop", "readOnly": true},
       {"name": "tmp", "mountPath": "/tmp"}]}],
    "volumes": [{"name": "config", "configMap": {"name": "shop", "defaultMode": 420}}, {"name": "tmp", "emptyDir": {}}],
    "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]}}}}`

// decode gives a tree of its own at each call, so that nothing is equal just for being the same.
func decode(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var value map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(text), &value); err != nil {
		tb.Fatalf("cannot decode the object: %v", err)
	}
	return value
}

func scaled(tb testing.TB) map[string]any {
	tb.Helper()
	body := decode(tb, deployment)
	body["spec"].(map[string]any)["replicas"] = int64(4)
	return body
}

func BenchmarkCompute(b *testing.B) {
	before := decode(b, deployment)
	for name, bench := range map[string]struct {
		after any
		items int
	}{
		"equal":            {after: decode(b, deployment)},
		"one leaf changed": {after: scaled(b), items: 1},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := diff.Compute(before, bench.after); len(got) != bench.items {
					b.Fatalf("got %d items, want %d", len(got), bench.items)
				}
			}
		})
	}
}

// The cost of a quiet object is what an operator pays for all objects of a cluster at every resync.
func TestComputeEqualAllocatesNothing(t *testing.T) {
	before, after := decode(t, deployment), decode(t, deployment)
	if got := testing.AllocsPerRun(100, func() { diff.Compute(before, after) }); got != 0 {
		t.Errorf("comparing equal objects made %v allocations, want none", got)
	}
	if got := testing.AllocsPerRun(100, func() { diff.Equal(before, after) }); got != 0 {
		t.Errorf("telling that objects are equal made %v allocations, want none", got)
	}
}
