package monitoring_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kopf-runtime/kopf-runtime/internal/logging"
)

const (
	folder   = "../../config/monitoring/"
	runbooks = logging.ManualAlerts + "#"
)

// The parts of an expression that contain names. They are not a full grammar: Prometheus checks that.
var (
	metricName = regexp.MustCompile(`\bkopf_[a-z_]+`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	template   = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// failureReporter gets the failures.
type failureReporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// failureCount counts the failures.
type failureCount int

func (*failureCount) Helper()                 {}
func (h *failureCount) Errorf(string, ...any) { *h++ }

// attachedLabels are labels that Prometheus itself has.
var attachedLabels = []string{"instance"}

// named are the families of an expression, and all labels that these have. A wrong name fails the test.
func named(t failureReporter, where, expression string, families map[string]family) (labels []string) {
	t.Helper()
	labels = slices.Clone(attachedLabels)
	found := metricName.FindAllString(expression, -1)
	if len(found) == 0 {
		t.Errorf("%s: there is no metric of ours in %s", where, expression)
	}
	for _, one := range found {
		known, is := families[one]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(one, suffix); cut && families[base].Type == "histogram" {
				known, is = families[base], true
				labels = append(labels, "le")
			}
		}
		if !is || known.Type == "histogram" && families[one].Type == "histogram" {
			t.Errorf("%s: there is no %s", where, one)
		}
		labels = append(labels, known.Labels...)
	}
	return labels
}

// check looks at all that an expression names.
func check(t failureReporter, where, expression string, families map[string]family, text string) {
	t.Helper()
	labels := named(t, where, expression, families)
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expression, pair[:1]) != strings.Count(expression, pair[1:]) {
			t.Errorf("%s: the %s do not match in %s", where, pair, expression)
		}
	}
	var used []string
	for _, group := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			used = append(used, strings.TrimSpace(label))
		}
	}
	for _, m := range matcher.FindAllStringSubmatch(expression, -1) {
		used = append(used, m[1])
		for value := range strings.SplitSeq(m[2], "|") {
			if !strings.HasPrefix(value, "$") && !strings.Contains(text, "`"+value+"`") {
				t.Errorf("%s: %s does not know %s=%q", where, page, m[1], value)
			}
		}
	}
	for _, label := range used {
		if !slices.Contains(labels, label) {
			t.Errorf("%s: no metric of it has the label %s: %s", where, label, expression)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts checks that alerts use existing metrics, labels and values, describe the problem by remaining labels, and
// have a section.
func TestAlerts(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, folder+"alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	families, text := table(t), read(t, page)
	var alerts, sections []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			alerts = append(alerts, rule.Alert)
			check(t, rule.Alert, rule.Expr, families, text)
			if want := runbooks + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
				t.Errorf("%s: the runbook is %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if severity := rule.Labels["severity"]; severity != "warning" && severity != "critical" {
				t.Errorf("%s: the severity is %q", rule.Alert, severity)
			}
			for _, label := range template.FindAllStringSubmatch(rule.Annotations["summary"], -1) {
				kept := slices.ContainsFunc(grouping.FindAllStringSubmatch(rule.Expr, -1), func(g []string) bool {
					return slices.Contains(strings.Split(g[1], ", "), label[1])
				})
				if !kept && strings.Contains(rule.Expr, " by ") {
					t.Errorf("%s: the label %s of the summary is summed up", rule.Alert, label[1])
				}
			}
		}
	}
	for line := range strings.Lines(read(t, "../../docs/monitoring.md")) {
		if section, is := strings.CutPrefix(strings.TrimSpace(line), "### "); is {
			sections = append(sections, section)
		}
	}
	if d := cmp.Diff(alerts, sections); d != "" || len(alerts) == 0 {
		t.Errorf("the alerts and their sections, -alerts, +sections:\n%s", d)
	}
}

// TestWrongExpressionsAreFound shows that wrong expressions fail the checks.
func TestWrongExpressionsAreFound(t *testing.T) {
	families, text := table(t), read(t, page)
	for reason, expression := range map[string]string{
		"no metric of ours":           `up == 0`,
		"a metric that is not there":  `kopf_handlers_total > 0`,
		"a counter has no buckets":    `rate(kopf_handler_attempts_total_bucket[5m])`,
		"a histogram has no value":    `kopf_change_latency_seconds > 3`,
		"a label of another metric":   `kopf_paused{kind="$kind"}`,
		"a label in a grouping":       `sum by (namespace) (kopf_unhandled_changes)`,
		"a value that is never there": `kopf_daemons{state="sleeping"}`,
		"parentheses":                 `sum((kopf_unhandled_changes)`,
	} {
		var wrong failureCount
		if check(&wrong, "it", expression, families, text); wrong != 1 {
			t.Errorf("%s: %d things are wrong with %s", reason, wrong, expression)
		}
	}
}
