package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/kopf-runtime/kopf-runtime/test/controlplane/assets"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/internal/process"
	"github.com/kopf-runtime/kopf-runtime/test/controlplane/progress"
)

// ControlPlane is a running control plane. Its methods may be called from several goroutines at once.
type ControlPlane struct {
	assets   assets.Assets
	options  Options
	report   *progress.Reporter
	dir      string
	url      string
	ca       *authority
	watchdog *process.Watchdog
	servers  []*server
	done     chan struct{}
	failure  error // written before broken is closed
	stop     func() error
}

// Start starts the servers and returns when they are ready to serve. The context bounds the start alone: a control
// plane lives until Stop is called or the calling process ends, however it ends.
//
// # Errors
//
// A server that fails to start is named, with the end of its log. Nothing is left behind then.
func Start(ctx context.Context, found assets.Assets, o Options) (*ControlPlane, error) {
	o, err := o.absolute()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{assets: found, options: o, report: progress.New(o.Progress), done: make(chan struct{})}
	c.stop = sync.OnceValue(c.clear)
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	go c.watch()
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) (err error) {
	if c.dir, err = stateFolder(); err != nil {
		return err
	}
	if c.watchdog, err = process.Watch(c.dir); err != nil {
		return err
	}
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if c.options.ControllerManager {
		return c.startControllerManager(ctx)
	}
	return nil
}

// Kubeconfig returns the path of a kubeconfig file with all rights. Stop removes the file.
func (c *ControlPlane) Kubeconfig() string { return filepath.Join(c.dir, adminName+".kubeconfig") }

// Done returns a channel that is closed when a server has ended without a call of Stop. Stop must be called
// nevertheless.
func (c *ControlPlane) Done() <-chan struct{} { return c.done }

// Err returns, after Done is closed, which server has ended, with the end of its log. It must not be called before.
func (c *ControlPlane) Err() error { return c.failure }

// Stop ends the servers and removes everything they had. Calling it again is harmless.
func (c *ControlPlane) Stop() error { return c.stop() }

func (c *ControlPlane) clear() error {
	for i := len(c.servers) - 1; i >= 0; i-- {
		// At once: an orderly end takes seconds, to save data that are thrown away.
		c.servers[i].isStopping.Store(true)
		c.servers[i].process.Stop(0)
	}
	var err error
	if c.dir != "" {
		if err = os.RemoveAll(c.dir); err != nil {
			err = fmt.Errorf("removing the control plane's folder: %w", err)
		}
	}
	if c.watchdog != nil {
		c.watchdog.Dismiss()
	}
	return err
}

// watch reports the first server that ends unasked.
func (c *ControlPlane) watch() {
	ended := make(chan *server)
	for _, s := range c.servers {
		go func() {
			<-s.process.Done()
			ended <- s
		}()
	}
	for range c.servers {
		s := <-ended
		if s.isStopping.Load() || c.failure != nil {
			continue
		}
		c.failure = s.unexpected()
		close(c.done)
	}
}

// stateFolder makes a folder that only its owner can look into: keys are in it, and etcd asks for no password.
func stateFolder() (string, error) {
	dir, err := os.MkdirTemp("", "controlplane-*")
	// A socket's path has room for about a hundred characters.
	if err == nil && len(dir) > 80 {
		if err = os.Remove(dir); err != nil {
			return "", fmt.Errorf("removing an unsuitable folder: %w", err)
		}
		dir, err = os.MkdirTemp("/tmp", "controlplane-*")
	}
	if err != nil {
		return "", fmt.Errorf("creating the control plane's folder: %w", err)
	}
	return dir, nil
}
