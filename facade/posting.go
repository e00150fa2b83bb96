package kopf

import (
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// PostingSettings configure Kubernetes events, see docs/events.md. Kopf: settings.posting.
type PostingSettings struct {
	// Disabled stops all Kubernetes events. Kopf: enabled, inverted.
	Disabled bool
	// Loggers also posts log lines of handlers, with the reason Logging. Kopf: loggers.
	Loggers bool
	// Level is the lowest level that is posted. Kopf: level.
	Level slog.Level
	// ReportingComponent is the source of events. Default: the operator's name; with [AsKopf], kopf. Kopf:
	// reporting_component.
	ReportingComponent string
	// ReportingInstance is the instance of the source. Default: dev. Kopf: reporting_instance.
	ReportingInstance string
	// EventNamePrefix begins generated names. Default: kopf-event-. Kopf: event_name_prefix.
	EventNamePrefix string
	// Plain posts each event separately, without limits. True with [AsKopf].
	Plain bool
	// PerSecond limits requests for events. Default: 10.
	PerSecond int
}

// posting returns the settings for the engine.
func (op *Operator) posting() reconcilers.Posting {
	p := op.settings.values.Posting
	return reconcilers.Posting{
		Component: p.ReportingComponent, Instance: p.ReportingInstance, NamePrefix: p.EventNamePrefix,
		Level: p.Level, Loggers: p.Loggers, Plain: p.Plain, PerSecond: float32(p.PerSecond),
		DefaultNamespace: op.defaultNamespace,
	}
}

// check returns the invalid fields, except numbers.
func (p *PostingSettings) check() (problems []error) {
	for _, wrong := range validation.NameIsDNSSubdomain(p.EventNamePrefix, true) {
		if p.EventNamePrefix != "" {
			problems = append(problems, fmt.Errorf("Posting.EventNamePrefix: %q: %s", p.EventNamePrefix, wrong))
		}
	}
	return problems
}
