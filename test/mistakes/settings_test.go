package mistakes_test

import (
	"time"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/storage/progress"
)

// setting is a mistake in the name of an operator, or in its settings: it does not start.
type setting struct {
	name        string
	newOperator func() *kopf.Operator
}

var settings = []setting{
	{"A name that is no domain", func() *kopf.Operator {
		return kopf.New("demo_operator")
	}},
	{"A bare number as a setting", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Execution: kopf.ExecutionSettings{DefaultBackoff: 60}})
	}},
	{"A negative duration", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Watching: kopf.WatchingSettings{ServerTimeout: -time.Minute}})
	}},
	{"A negative number of workers", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Queueing: kopf.QueueingSettings{WorkerLimit: -5}})
	}},
	{"A namespace that cannot be", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Namespaces: []string{"team_a"}})
	}},
	{"No namespace, for all of them", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Namespaces: []string{""}})
	}},
	{"Namespaces with a comma between them", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Namespaces: []string{"demo, test"}})
	}},
	{"A bracket that is not closed", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Namespaces: []string{"demo-[ab"}})
	}},
	{"A finalizer without a domain", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Persistence: kopf.PersistenceSettings{Finalizer: "mine"}})
	}},
	{"A storage that never writes", func() *kopf.Operator {
		readOnly := progress.Status{NoWrite: true}
		return kopf.New("demo.example.org",
			kopf.Settings{Persistence: kopf.PersistenceSettings{ProgressStorage: readOnly}})
	}},
	{"A prefix of names that are none", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Posting: kopf.PostingSettings{EventNamePrefix: "Demo_"}})
	}},
	{"Webhooks without an address", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{Managed: "auto.kopf.dev"}})
	}},
	{"A URL without TLS", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{URL: "http://here:9443"}})
	}},
	{"A certificate for each replica", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.Settings{
			Admission: kopf.AdmissionSettings{Service: "demo/webhook", SelfSigned: true},
		})
	}},
	{"Settings twice", func() *kopf.Operator {
		return kopf.New("demo.example.org", kopf.AsKopf(), kopf.Settings{Namespaces: []string{"demo"}})
	}},
}
