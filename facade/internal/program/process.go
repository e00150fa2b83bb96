package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/commandline"
	"github.com/kopf-runtime/kopf-runtime/facade/internal/serving"
)

// RunnableOperator is what a process needs of an operator.
type RunnableOperator interface {
	// Settings are those of the manager, as they are now. They come with all errors of registrations.
	Settings() (serving.Settings, error)
	// Apply takes over the flags. They win over the settings, but not over the startup.
	Apply(given commandline.Given)
	// UseClient gives the startup a client.
	UseClient(late client.Client)
	// StartUp may change the settings. It returns false if the operator must not continue.
	StartUp(ctx context.Context) (ready bool, err error)
	CleanUp(ctx context.Context) error
	// SetUp adds the operator to the manager. The default namespace is that of the credentials.
	SetUp(m ctrl.Manager, defaultNamespace func() string) error
	// ExitTimeout limits the exit of the process.
	ExitTimeout() time.Duration
}

// Process runs an operator with a manager of its own. It is the operator of the command line.
type Process struct {
	Name     string
	Operator RunnableOperator
	Log      func() logr.Logger
}

var _ commandline.Operator = Process{}

// Settings are those of the manager.
func (p Process) Settings() (serving.Settings, error) { return p.Operator.Settings() }

// SetupWithManager adds the operator to the manager.
func (p Process) SetupWithManager(m ctrl.Manager, defaultNamespace func() string) error {
	return p.Operator.SetUp(m, defaultNamespace)
}

// Around calls serve between the startup and the cleanup.
func (p Process) Around(ctx context.Context, given commandline.Given, serve func() error) error {
	limit := serving.WatchExit(ctx, p.Log(), p.Operator.ExitTimeout)
	defer limit.Stop()
	p.Operator.Apply(given)
	own, err := p.Operator.Settings()
	if err == nil {
		err = p.useLateClient(ctx, own, given.Cluster)
	}
	if err != nil {
		return err
	}
	return p.around(ctx, serve, limit.Begin)
}

// useLateClient gives the startup a client, which logs in when it is used first.
func (p Process) useLateClient(ctx context.Context, settings serving.Settings, to serving.Cluster) error {
	late, err := settings.LateClient(ctx, p.Name, to)
	if err != nil {
		return fmt.Errorf("operator %q: making the client of the startup: %w", p.Name, err)
	}
	p.Operator.UseClient(client.WithFieldOwner(late, p.Name))
	return nil
}

// around calls serve between the startup and the cleanup, and calls returned after serve.
func (p Process) around(ctx context.Context, serve func() error, returned func()) error {
	ready, err := p.Operator.StartUp(ctx)
	if !ready {
		return err
	}
	err = serve()
	returned()
	return errors.Join(err, p.Operator.CleanUp(ctx))
}
