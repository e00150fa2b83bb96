package manifests

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterneeds"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
)

// The formats: one stream of YAML, a folder for kustomize, and a chart for Helm.
const (
	Plain     = "plain"
	Kustomize = "kustomize"
	Helm      = "helm"
)

// Parts of the manifests. Each is a file, in the order of Parts.
const (
	Deployment = "deployment"
	Webhooks   = "webhooks"

	crdPart, namespacePart, rbacPart = "crds", "namespace", "rbac"
	peeringPart                      = "peering"
	monitoringPart, networkPart      = "monitoring", "network-policy"
	autoscalingPart                  = "autoscaling"
)

// Parts are the names of all parts. The last three are optional.
var Parts = []string{
	crdPart, namespacePart, rbacPart, Deployment, Webhooks, peeringPart, monitoringPart, networkPart, autoscalingPart,
}

// Optional are the parts that are left out by default, as they need other software in the cluster.
var Optional = []string{monitoringPart, networkPart, autoscalingPart}

// Address is where the API server reaches admission handlers. It replaces that of the settings.
type Address struct {
	// Service has the form "namespace/name", and URL the form "https://host:9443". If both are empty, the settings are
	// used.
	Service, URL string
	// Bundle is the CA in PEM. If it is nil, other components set it, such as cert-manager.
	Bundle []byte
}

// Options are the choices of the user.
type Options struct {
	// Image is the container image; empty is a placeholder. Namespace is that of the operator; empty is the default.
	Image, Namespace string
	Replicas         int
	// DefaultReplicas is true if the user has left the number open: replicas that share the objects are more than one.
	DefaultReplicas bool
	// With adds optional parts. Only selects parts; none means all that are not optional.
	With, Only []string
	// CertManager lets cert-manager provide the certificate of admission handlers.
	CertManager bool
	// Format is one of the constants. CRDs is the file or folder with the CRDs of the user; empty is none.
	Format, CRDs string
	// Recording is a file of audit events for [ProposeRules]; empty is none.
	Recording string
	Webhooks  Address
}

// Includes reports whether the part is selected.
func (o Options) Includes(part string) bool {
	if len(o.Only) > 0 {
		return slices.Contains(o.Only, part)
	}
	return slices.Contains(o.With, part) || !slices.Contains(Optional, part)
}

// imagePattern matches images. It excludes everything that YAML or a template could take for something else.
var imagePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/@-]*[A-Za-z0-9]$`)

// Check returns the first invalid option, by its flag.
func (o Options) Check() error {
	if !slices.Contains([]string{Plain, Kustomize, Helm}, o.Format) {
		return fmt.Errorf("--format: %q: it is %s, %s or %s", o.Format, Plain, Kustomize, Helm)
	}
	for _, part := range slices.Concat(o.With, o.Only) {
		if !slices.Contains(Parts, part) {
			return fmt.Errorf("--with and --only: unknown part %q: there are %s", part, strings.Join(Parts, ", "))
		}
	}
	if o.Image != "" && !imagePattern.MatchString(o.Image) {
		return fmt.Errorf("--image: %q is not the name of an image", o.Image)
	}
	if o.Replicas < 1 {
		return fmt.Errorf("--replicas: %d: at least one is needed", o.Replicas)
	}
	return nil
}

// ManifestInput is the operator that the manifests are for.
type ManifestInput struct {
	// Name is the name of the operator, such as "websites.example.org".
	Name  string
	Needs []clusterneeds.Need
	// Namespaces are the served ones; none means the whole cluster. Args are the flags that select them.
	Namespaces namespaces.Patterns
	Args       []string
	// Peering is the name of a peering object that the operator requires; empty without one.
	Peering            string
	PeeringClusterwide bool
	// Coordinated is true if several replicas agree on which of them acts.
	Coordinated bool
	// Shards is the number of ranges of objects that all replicas share; zero if one replica acts.
	Shards int
	// MetricsSecure is true if the metrics are served by HTTPS, and need a token.
	MetricsSecure bool
	// ExitTime is how long an exit takes at most.
	ExitTime time.Duration
	// Reviews is true if there are admission handlers. Service leads to them, if it is used, and WebhookPort is where
	// they are served. CertificateDir is where the certificate is mounted, if the operator reads it from there.
	Reviews        bool
	Service        types.NamespacedName
	ServicePort    int32
	WebhookPort    int
	CertificateDir string
	// Configurations are the webhook configurations, unless the operator maintains them itself.
	Configurations []client.Object
}

// resourceName is the name of namespaced objects: the first part of the operator's name, with a suffix.
func (o ManifestInput) resourceName() string { return o.firstLabel() + "-operator" }

func (o ManifestInput) firstLabel() string {
	first, _, _ := strings.Cut(o.Name, ".")
	return first
}

// chooseNamespace returns the namespace of the operator. A Service of the settings determines it.
func (o ManifestInput) chooseNamespace(given string) (string, error) {
	service := o.Service.Namespace
	switch {
	case given == "" && service != "":
		given = service
	case given == "":
		given = o.firstLabel() + "-system"
	case service != "" && service != given:
		return "", fmt.Errorf("--operator-namespace: %q: the Service of the admission handlers is in the "+
			"namespace %q, and its pods must be there", given, service)
	}
	if problems := validation.IsDNS1123Label(given); len(problems) > 0 {
		return "", fmt.Errorf("--operator-namespace: %q is not the name of a namespace: %s", given, problems[0])
	}
	if quoted(given) != given {
		return "", fmt.Errorf("--operator-namespace: YAML reads %q as a number or another value: choose a word", given)
	}
	return given, nil
}

// check returns the reason why the operator cannot run with these options.
func (o ManifestInput) check(options Options) error {
	switch {
	case options.Replicas > 1 && !o.Coordinated && options.Includes(Deployment):
		return errors.New("--replicas: without leader election and without a required peering object, each replica " +
			"would handle all objects: leave it out, or name a peering object by --peering")
	case o.Shards == 0 && slices.Contains(slices.Concat(options.With, options.Only), autoscalingPart):
		return errors.New("--with=autoscaling: one replica of the operator acts, so more of them do not handle more: " +
			"let them share the objects by Sharding.Shards, or --shards")
	case options.CertManager && !o.Reviews:
		return errors.New("--cert-manager: the operator has no admission handlers, so it needs no certificate")
	case options.CertManager && o.Service.Name == "":
		return errors.New("--cert-manager: the certificate is for a Service: set Admission.Service, or --service")
	case options.CertManager && !path.IsAbs(o.CertificateDir) && options.Includes(Deployment):
		return errors.New("--cert-manager: the operator reads no certificate: set Admission.CertificateDir to the " +
			"absolute path where it will be mounted, such as /certificate")
	}
	return nil
}
