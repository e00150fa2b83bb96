package manifests

import (
	"math"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/config"
)

// generator makes the parts of the manifests of one operator. The templates use its fields and its exported methods.
// All texts of methods are YAML.
type generator struct {
	ManifestInput
	Options

	// ImageChange is the change of the image by kustomize; nil for the other formats.
	ImageChange *imageChange
	// Files are the files of a kustomization.
	Files []string
}

// ObjectName returns the name of namespaced objects.
func (g generator) ObjectName() string { return quoted(g.resourceName()) }

// Operator returns the name of the operator.
func (g generator) Operator() string { return quoted(g.ManifestInput.Name) }

// Scraper returns the name of the service account of Prometheus.
func (g generator) Scraper() string { return quoted(g.resourceName() + scraperSuffix) }

// ScraperRole returns the name of the ClusterRole with which Prometheus reads the metrics.
func (g generator) ScraperRole() string { return quoted(g.ManifestInput.Name + scraperSuffix) }

// Certificate returns the name of the Secret with the certificate.
func (g generator) Certificate() string { return g.Service.Name + "-certificate" }

// MountsCertificate reports whether the pods get the certificate from the Secret.
func (g generator) MountsCertificate() bool {
	return g.Reviews && g.CertificateDir != "" && g.Service.Name != ""
}

// ExitSeconds returns the longest time of an exit.
func (g generator) ExitSeconds() int { return int(math.Ceil(g.ExitTime.Seconds())) }

// GraceSeconds returns the grace period of pods: the time of the exit with some reserve, in multiples of five.
func (g generator) GraceSeconds() int { return int(math.Ceil(g.ExitTime.Seconds()/5)+1) * 5 }

// Several returns the condition of parts for several replicas. The number of replicas that share the objects changes
// while they run.
func (g generator) Several() string {
	if g.Shards > 0 {
		return "true"
	}
	return "gt (int .Values.replicas) 1"
}

// Autoscaled reports whether the number of replicas follows the work.
func (g generator) Autoscaled() bool { return g.Shards > 0 && g.Includes(autoscalingPart) }

// MostReplicas returns the most replicas that have work, each with two ranges or more; zero if one replica acts.
func (g generator) MostReplicas() int {
	if g.Shards == 0 {
		return 0
	}
	return max(g.Replicas, g.Shards/2)
}

// Peerings returns the peering objects. Those of namespaces that match a pattern are unknown.
func (g generator) Peerings() (all []peering) {
	names, plain := g.Namespaces.PlainNames()
	switch {
	case g.Peering == "":
	case len(g.Namespaces) == 0 || g.PeeringClusterwide:
		all = append(all, peering{Kind: "ClusterKopfPeering"})
	case plain:
		for _, name := range names {
			all = append(all, peering{"KopfPeering", g.templateNamespace(name)})
		}
	}
	return all
}

// templateNamespace returns a namespace as it stands in templates of Helm, where that of the operator has no name.
func (g generator) templateNamespace(name string) string {
	if name == g.Namespace {
		return "{{ .Release.Namespace }}"
	}
	return quoted(name)
}

// Alerts returns the groups of alerts.
func (g generator) Alerts() (string, error) {
	content, err := config.Files.ReadFile("monitoring/alerts.yaml")
	// The comment before the groups is for the users of the file.
	_, groups, _ := strings.Cut("\n"+string(content), "\ngroups:\n")
	return literal(indent(2, "groups:\n"+groups)), err
}

// Dashboard returns the dashboard of Grafana.
func (g generator) Dashboard() (string, error) {
	content, err := config.Files.ReadFile("monitoring/dashboard.json")
	return literal(indent(4, string(content))), err
}

// configurationsText returns the webhook configurations as YAML.
func (g generator) configurationsText() (text string, err error) {
	for _, one := range g.Configurations {
		if g.CertManager {
			one = one.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has its type
			annotations := one.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["cert-manager.io/inject-ca-from"] = g.Namespace + "/" + g.Certificate()
			one.SetAnnotations(annotations)
		}
		data, err := yaml.Marshal(one)
		if err != nil {
			return "", err
		}
		text += "---\n" + strings.ReplaceAll(string(data), "  creationTimestamp: null\n", "")
	}
	return literal(text), nil
}
