package manifests

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// templates are executed twice. The delimiters [[ and ]] are for the values of the operator. The result is a template
// of Helm; for the other formats, it is executed by the functions of renderChart.
//
//go:embed templates
var templates embed.FS

// plainText matches texts that need no quotes in YAML.
var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)

// otherValues are plain texts that YAML reads as other values.
var otherValues = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// quoted returns the text as YAML, with quotes only if it needs them. In a template of Helm, it stays as it is.
func quoted(text string) string {
	if plainText.MatchString(text) && !slices.Contains(otherValues, strings.ToLower(text)) {
		return text
	}
	// Texts of JSON are YAML. The encoding of a string cannot fail.
	data, _ := json.Marshal(text)
	return literal(string(data))
}

// literal returns a text that stands for itself in a template of Helm.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }

// list returns the texts as a list in one line.
func list(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, quoted(text))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// indent returns the text with each line indented.
func indent(spaces int, text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", spaces) + line
		}
	}
	return strings.Join(lines, "\n")
}

// execute executes one of the templates with the values of the operator.
func execute(file string, values any) (string, error) {
	content, err := templates.ReadFile("templates/" + file)
	if err != nil {
		return "", err
	}
	made := template.New(file).Delims("[[", "]]").Option("missingkey=error").
		Funcs(template.FuncMap{"argument": argument, "list": list, "quote": quoted})
	return run(made, string(content), values)
}

// run parses and executes a template.
func run(made *template.Template, content string, values any) (string, error) {
	parsed, err := made.Parse(content)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, values); err != nil {
		return "", err
	}
	return text.String(), nil
}

// renderChart executes a template of Helm with the values of values.yaml. It has those functions of Helm that the
// templates use.
func renderChart(name, content, values, namespace string) (string, error) {
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return "", fmt.Errorf("reading the values of the chart: %w", err)
	}
	made := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"fail": func(text string) (string, error) { return "", errors.New(text) },
		"int":  func(number float64) int { return int(number) },
		"nindent": func(spaces int, text string) string {
			return "\n" + indent(spaces, text)
		},
		"toYaml": func(value any) (string, error) {
			data, err := yaml.Marshal(value)
			return string(data), err
		},
	})
	return run(made, content, map[string]any{
		"Values": given, "Release": map[string]string{"Namespace": namespace},
	})
}
