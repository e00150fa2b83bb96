package kopf_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// What is left out has its default.
func ExampleSettings() {
	kopf.New("databases.example.org", kopf.Settings{
		Namespaces:  []string{"team-a", "team-b"},
		AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme},
		Queueing:    kopf.QueueingSettings{WorkerLimit: 20},
		Execution:   kopf.ExecutionSettings{DefaultBackoff: 10 * time.Second, Lifecycle: kopf.ASAP},
		Background:  kopf.BackgroundSettings{CancellationPolling: kopf.Never},
	})
}

// A take-over has settings of its own beside those of Kopf.
func ExampleAsKopf() {
	settings := kopf.AsKopf()
	settings.Namespaces = []string{"databases"}
	settings.Persistence.IgnoredFields = []string{"spec.replicas"}
	kopf.New("databases.example.org", settings)
}
