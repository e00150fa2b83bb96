package manifests

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/config"
)

// File is one generated file. For the plain format, the files are the parts of one stream.
type File struct{ Name, Content string }

// peering is one peering object.
type peering struct{ Kind, Namespace string }

// values are the values of the templates.
type values struct {
	// Name is that of objects, and Operator that of the operator.
	Name, Operator            string
	Roles                     []role
	Args                      []string
	Replicas                  int
	OneReplica                bool
	Sharded, Autoscaled       bool
	Several                   string // the condition of parts for several replicas
	MostReplicas              int
	Image                     string
	ExitSeconds, GraceSeconds int
	WebhookPort               int
	Service                   string
	ServicePort               int32
	CertManager               bool
	CertificateDir            string
	Certificate               string
	Peering                   string
	Peerings                  []peering
	Alerts, Dashboard         string
	MetricsSecure             bool
	Scraper, ScraperRole      string // the service account of Prometheus, and its ClusterRole
	ImageChange               *imageChange
	Files                     []string
}

// scraperSuffix ends the names of the objects with which Prometheus reads the metrics.
const scraperSuffix = "-metrics-reader"

// shardedReplicas is the default number of replicas that share the objects.
const shardedReplicas = 3

// imageName is the image in a Deployment for kustomize, which replaces it.
const imageName = "operator"

// Generate returns the files of the selected parts in their order, and hints for the user. The content depends on the
// arguments alone.
func Generate(o ManifestInput, options Options, crds []CRD) (files []File, hints []string, err error) {
	if err := o.check(options); err != nil {
		return nil, nil, err
	}
	namespace, err := o.chooseNamespace(options.Namespace)
	if err != nil {
		return nil, nil, err
	}
	if options.Image == "" && options.Includes(Deployment) {
		hints = append(hints, "There is no --image: replace "+o.defaultImage()+".")
	}
	options.Image = cmp.Or(options.Image, o.defaultImage())
	if options.DefaultReplicas && o.Shards > 0 {
		options.Replicas = shardedReplicas
	}
	v, err := o.values(options, namespace)
	if err != nil {
		return nil, nil, err
	}
	g := generator{o, options, namespace, v}
	for _, part := range Parts {
		// With Helm, users name the namespace, and Helm creates it.
		if !options.Includes(part) || part == namespacePart && options.Format == Helm {
			continue
		}
		text, err := g.part(part, crds)
		if err != nil {
			return nil, nil, fmt.Errorf("making the manifests of %s: %w", part, err)
		}
		if text != "" {
			files = append(files, File{part + ".yaml", text})
		}
	}
	files, err = g.arrange(files)
	return files, append(hints, g.hints()...), err
}

// defaultImage is a placeholder of a valid form.
func (o ManifestInput) defaultImage() string {
	return "registry.example.org/" + o.firstLabel() + ":latest"
}

// values returns the values of the templates.
func (o ManifestInput) values(options Options, namespace string) (v values, err error) {
	exit := int(math.Ceil(o.ExitTime.Seconds()))
	v = values{
		Name: quoted(o.resourceName()), Operator: quoted(o.Name), Roles: o.roles(namespace),
		Replicas: options.Replicas, OneReplica: !o.Coordinated, Image: options.Image,
		ExitSeconds: exit, GraceSeconds: graceSeconds(o.ExitTime),
		Service: o.Service.Name, ServicePort: o.ServicePort, CertManager: options.CertManager,
		Certificate: o.Service.Name + "-certificate",
		Peering:     quoted(o.Peering), Peerings: o.peerings(namespace),
		MetricsSecure: o.MetricsSecure, Scraper: quoted(o.resourceName() + scraperSuffix),
		ScraperRole: quoted(o.Name + scraperSuffix),
	}
	v.Several = "gt (int .Values.replicas) 1"
	if o.Shards > 0 {
		// Their number changes while they run, and each has its share of the work.
		v.Sharded, v.Several = true, "true"
		v.Autoscaled = options.Includes(autoscalingPart)
		v.MostReplicas = max(options.Replicas, o.Shards/2)
	}
	if options.Format == Kustomize {
		v.ImageChange, v.Image = splitImage(options.Image), imageName
	}
	if o.Reviews {
		v.WebhookPort = o.WebhookPort
	}
	if o.Reviews && o.CertificateDir != "" && o.Service.Name != "" {
		v.CertificateDir = quoted(o.CertificateDir)
	}
	args := append([]string{"run"}, o.Args...)
	args = append(args, "--log-format=json", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081")
	for _, arg := range args {
		v.Args = append(v.Args, argument(arg))
	}
	alerts, err := config.Files.ReadFile("monitoring/alerts.yaml")
	if err != nil {
		return v, err
	}
	dashboard, err := config.Files.ReadFile("monitoring/dashboard.json")
	if err != nil {
		return v, err
	}
	// The comment before the groups is for the users of the file.
	_, groups, _ := strings.Cut("\n"+string(alerts), "\ngroups:\n")
	v.Alerts = literal(indent(2, "groups:\n"+groups))
	v.Dashboard = literal(indent(4, string(dashboard)))
	return v, nil
}

// graceSeconds returns the grace period of pods: the time of the exit with some reserve, in multiples of five.
func graceSeconds(exit time.Duration) int { return int(math.Ceil(exit.Seconds()/5)+1) * 5 }

// peerings returns the peering objects. Those of namespaces that match a pattern are unknown.
func (o ManifestInput) peerings(own string) (all []peering) {
	names, plain := o.Namespaces.PlainNames()
	switch {
	case o.Peering == "":
	case len(o.Namespaces) == 0 || o.PeeringClusterwide:
		all = append(all, peering{Kind: "ClusterKopfPeering"})
	case plain:
		for _, name := range names {
			if name == own {
				all = append(all, peering{"KopfPeering", ownNamespace})
				continue
			}
			all = append(all, peering{"KopfPeering", quoted(name)})
		}
	}
	return all
}

// argument returns a flag as YAML. Flags begin with a dash, so they need quotes less often than other texts.
func argument(text string) string {
	name, value, ok := strings.Cut(text, "=")
	if ok && strings.HasPrefix(name, "--") && (quoted(value) == value || strings.HasPrefix(value, ":")) {
		return text
	}
	if !ok && strings.HasPrefix(text, "--") {
		return text
	}
	return quoted(text)
}

// configurationsText returns the webhook configurations as YAML.
func (g generator) configurationsText() (text string, err error) {
	for _, one := range g.operator.Configurations {
		if g.options.CertManager {
			one = one.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has its type
			annotations := one.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["cert-manager.io/inject-ca-from"] = g.namespace + "/" + g.values.Certificate
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
