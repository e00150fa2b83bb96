package kopf_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Fields that are not set have defaults.
func ExampleSettings() {
	op := kopf.New("databases.example.org", kopf.Settings{
		Namespaces:  []string{"team-a", "team-b"},
		AddToScheme: runtime.SchemeBuilder{corev1.AddToScheme},
		Queueing:    kopf.QueueingSettings{WorkerLimit: 20},
		Execution:   kopf.ExecutionSettings{DefaultBackoff: 10 * time.Second, Lifecycle: kopf.ASAP},
		Background:  kopf.BackgroundSettings{CancellationPolling: kopf.Never},
	})
	op.OnStartup("show", func(_ context.Context, a *kopf.Activity) error {
		fmt.Println(a.Settings.Queueing.WorkerLimit, a.Settings.Execution.Lifecycle)
		return nil
	})

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-op.Ready()
		cancel()
	}()
	err := op.Run(ctx, kopf.RunSettings{Config: memapi.Config(memapi.New()), Log: logr.Discard()})
	fmt.Println(err)
	// Output:
	// 20 ASAP
	// <nil>
}

// Settings of the operator go on top of those of Kopf.
func ExampleAsKopf() {
	settings := kopf.AsKopf()
	settings.Namespaces = []string{"databases"}
	settings.Persistence.IgnoredFields = []string{"spec.replicas"}
	kopf.New("databases.example.org", settings)
	fmt.Println(settings.Peering.KopfRules, settings.Namespaces)
	// Output: true [databases]
}
