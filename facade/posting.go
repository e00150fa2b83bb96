package kopf

import (
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/kopf-runtime/kopf-runtime/reconcilers"
)

// PostingSettings are those of Kubernetes events; docs/events.md has more of them. Kopf: settings.posting.
type PostingSettings struct {
	// Disabled posts no Kubernetes events at all: [Change.Event] and the like do nothing. Kopf: enabled, the inverse.
	Disabled bool
	// Loggers posts what handlers of changes, daemons and timers log, and what is logged of their outcomes, as
	// Kubernetes events with the reason Logging: the message, its error, and the values of the line. Kopf: loggers.
	Loggers bool
	// Level is that of [Change.Info], [Change.Warn], [Change.Exception] and log lines which are posted, and of those
	// above it. The levels are slog.LevelDebug, which is V(1) and beyond of a logger, slog.LevelInfo, slog.LevelWarn
	// and slog.LevelError. Default: slog.LevelInfo. Kopf: level.
	Level slog.Level
	// ReportingComponent is the source of the events. Default: the operator's name; by [AsKopf], kopf. Kopf:
	// reporting_component.
	ReportingComponent string
	// ReportingInstance is the instance of the source. Default: dev. Kopf: reporting_instance.
	ReportingInstance string
	// EventNamePrefix begins the names of the events, which the API server completes. Default: kopf-event-. Kopf:
	// event_name_prefix.
	EventNamePrefix string
	// Plain posts each event by itself, and however many there are: identical ones are not counted in one. True by
	// [AsKopf]. Kopf: always.
	Plain bool
	// PerSecond is how many requests there are for all Kubernetes events in the long run, unless Plain is set. Default:
	// 10. Kopf: no limit.
	PerSecond int
}

// posting is how the engine posts.
func (op *Operator) posting() reconcilers.Posting {
	p := op.settings.values.Posting
	return reconcilers.Posting{
		Component: p.ReportingComponent, Instance: p.ReportingInstance, NamePrefix: p.EventNamePrefix,
		Level: p.Level, Loggers: p.Loggers, Plain: p.Plain, PerSecond: float32(p.PerSecond),
		DefaultNamespace: op.defaultNamespace,
	}
}

// check tells what is wrong with the settings, but for their numbers.
func (p *PostingSettings) check() (problems []error) {
	for _, wrong := range validation.NameIsDNSSubdomain(p.EventNamePrefix, true) {
		if p.EventNamePrefix != "" {
			problems = append(problems, fmt.Errorf("Posting.EventNamePrefix: %q: %s", p.EventNamePrefix, wrong))
		}
	}
	return problems
}
