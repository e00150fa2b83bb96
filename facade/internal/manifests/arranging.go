package manifests

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kopf-runtime/kopf-runtime/config"
)

// part returns the text of one part, or "" if the operator does not need it. It is a template of Helm, except for CRDs.
func (g generator) part(part string, crds []CRD) (text string, err error) {
	switch part {
	case crdPart:
		return g.crdsText(crds)
	case peeringPart:
		if len(g.Peerings()) == 0 {
			return "", nil
		}
	case Webhooks:
		if g.Service.Name == "" && len(g.Configurations) == 0 {
			return "", nil
		}
	}
	if text, err = execute(part+".yaml", g); err != nil {
		return "", err
	}
	if part == Webhooks {
		more, err := g.configurationsText()
		if err != nil {
			return "", err
		}
		text = g.guard() + text + more
	}
	return trim(text), nil
}

// guard ends an installation by Helm in another namespace than that of the Service: the operator's settings and the
// webhook configurations name it.
func (g generator) guard() string {
	if g.Format != Helm || g.Service.Name == "" {
		return ""
	}
	return fmt.Sprintf("{{- if ne .Release.Namespace %q }}{{ fail %q }}{{ end }}\n", g.Namespace,
		"install the chart in the namespace "+g.Namespace+", which the operator names")
}

// crdsText returns the CRDs: those of the user first, then those of peering.
func (g generator) crdsText(crds []CRD) (text string, err error) {
	for _, crd := range crds {
		text += "---\n" + crd.Text
	}
	// The user's folder may have them already.
	hasPeering := func(crd CRD) bool { return strings.Contains(crd.Text, "kopfpeerings.kopf.dev") }
	if g.Peering != "" && !slices.ContainsFunc(crds, hasPeering) {
		content, err := config.Files.ReadFile("crd/peerings.yaml")
		if err != nil {
			return "", err
		}
		text += "---\n" + string(content)
	}
	return trim(text), nil
}

// trim removes separators and empty lines at both ends.
func trim(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), "---")
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return text + "\n"
}

// arrange returns the files of the format.
func (g generator) arrange(parts []File) (files []File, err error) {
	settings, err := execute("values.yaml", g)
	if err != nil {
		return nil, err
	}
	if g.Format == Helm {
		return g.arrangeChart(parts, settings)
	}
	for _, one := range parts {
		text := one.Content
		if one.Name != crdPart+".yaml" {
			if text, err = renderChart(one.Name, text, settings, g.Namespace); err != nil {
				return nil, err
			}
		}
		files = append(files, File{one.Name, text})
		g.Files = append(g.Files, one.Name)
	}
	if g.Format == Kustomize {
		text, err := execute("kustomization.yaml", g)
		if err != nil {
			return nil, err
		}
		files = append(files, File{"kustomization.yaml", text})
	}
	return files, nil
}

// arrangeChart returns the files of a chart. Helm installs the files in the folder crds before the others, as they are.
func (g generator) arrangeChart(parts []File, settings string) (files []File, err error) {
	chart, err := execute("chart.yaml", g)
	if err != nil {
		return nil, err
	}
	files = []File{{"Chart.yaml", chart}, {"values.yaml", settings}}
	for _, one := range parts {
		if one.Name != crdPart+".yaml" {
			one.Name = "templates/" + one.Name
		} else {
			one.Name = "crds/" + one.Name
		}
		files = append(files, one)
	}
	notes, err := templates.ReadFile("templates/notes.txt")
	return append(files, File{"templates/NOTES.txt", string(notes)}), err
}

// imageChange is the replacement of an image by kustomize.
type imageChange struct{ Name, Tag, Digest string }

// splitImage splits an image into its name, and its tag or digest.
func splitImage(image string) *imageChange {
	name, digest, _ := strings.Cut(image, "@")
	change := &imageChange{Name: name, Digest: digest}
	// A colon before the last slash is that of a port.
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") && digest == "" {
		change.Name, change.Tag = name[:i], name[i+1:]
	}
	return change
}

// hints returns the remaining decisions and steps of the user.
func (g generator) hints() (all []string) {
	if g.Reviews && g.Replicas == 1 && g.Includes(Deployment) {
		all = append(all, "There is one replica: the API server rejects requests while it restarts. See --replicas.")
	}
	if g.MountsCertificate() && !g.CertManager && g.Includes(Deployment) {
		all = append(all, fmt.Sprintf("Create the Secret %s/%s of the certificate, with tls.crt and tls.key, or add "+
			"--cert-manager.", g.Namespace, g.Certificate()))
	}
	if g.Shards > 0 && max(g.Replicas, g.MostReplicas()) > g.Shards {
		all = append(all, fmt.Sprintf("There are more replicas than the %d ranges of objects: some have nothing to do.",
			g.Shards))
	}
	switch {
	case g.Peering != "" && len(g.Peerings()) == 0:
		all = append(all, fmt.Sprintf("Create a KopfPeering %q in each namespace that the operator serves.", g.Peering))
	case len(g.Peerings()) > 0 && g.Format != Helm && len(g.Only) == 0:
		all = append(all, "Apply the CRDs first: kubectl rejects objects of kinds that the same command creates. See "+
			"--only=crds.")
	}
	return all
}
