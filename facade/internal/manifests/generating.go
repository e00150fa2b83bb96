package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// File is one generated file. For the plain format, the files are the parts of one stream.
type File struct{ Name, Content string }

// peering is one peering object.
type peering struct{ Kind, Namespace string }

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
	options.Namespace = namespace
	o.Args = slices.Concat([]string{"run"}, o.Args, []string{
		"--log-format=json", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081",
	})
	g := generator{ManifestInput: o, Options: options}
	if g.Format == Kustomize {
		g.ImageChange, g.Image = splitImage(g.Image), imageName
	}
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
