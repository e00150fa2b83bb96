package manifests_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/manifests"
)

// TestSharding shows the Deployment of replicas that share the objects, and what makes their number follow the backlog.
func TestSharding(t *testing.T) {
	o, options := full()
	o.Shards = 16
	for name, tc := range map[string]struct {
		reason     string
		replicas   int  // zero leaves it open
		autoscaled bool // with the part
		want       int32
		most       int32
	}{
		"Default":    {reason: "the default is three replicas", want: 3},
		"One":        {reason: "one replica is updated and drained as several are", replicas: 1, want: 1},
		"Autoscaled": {reason: "an autoscaler sets the number, within the ranges", autoscaled: true, want: 3, most: 8},
		"Large": {reason: "the least number is also the most, if it is larger", replicas: 12, autoscaled: true,
			want: 12, most: 12},
	} {
		for _, format := range []string{manifests.Plain, manifests.Kustomize} {
			t.Run(name+format, func(t *testing.T) {
				options := options
				options.Format = format
				if options.Replicas = tc.replicas; tc.replicas == 0 {
					options.Replicas, options.DefaultReplicas = 1, true
				}
				if tc.autoscaled {
					options.With = []string{"autoscaling"}
				}
				files := generate(t, o, options)
				deployment := parsedDeployment(t, strings.Split(files["deployment.yaml"], "\n---\n")[0]).Spec
				if !strings.Contains(files["deployment.yaml"], "  maxUnavailable: 1\n") {
					t.Error("drains of nodes end one replica after the other")
				}
				if got := deployment.Strategy.Type; got != appsv1.RollingUpdateDeploymentStrategyType {
					t.Errorf("the strategy is %s: a new pod takes its share before an old one ends", got)
				}
				var scaler autoscalingv2.HorizontalPodAutoscaler
				if err := yaml.UnmarshalStrict([]byte(files["autoscaling.yaml"]), &scaler); err != nil {
					t.Fatal(err)
				}
				least := deployment.Replicas
				if tc.autoscaled {
					least = scaler.Spec.MinReplicas
				}
				if ptr.Deref(least, 0) != tc.want || scaler.Spec.MaxReplicas != tc.most ||
					tc.autoscaled == (deployment.Replicas != nil) {
					t.Errorf("%s: got at least %d, at most %d replicas", tc.reason, ptr.Deref(least, 0),
						scaler.Spec.MaxReplicas)
				}
			})
		}
	}
}
