package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// What the handlers need of the servers. All of it can be repeated: what is there already stays as it is.
type (
	// machines are servers by the names of their databases.
	machines interface {
		Start(ctx context.Context, name, version string, size int32) (host string, err error)
		Follow(ctx context.Context, name string, replica int32) error
		Destroy(ctx context.Context, name string) error
	}
	// archive keeps backups.
	archive interface {
		Backup(ctx context.Context, name string) (backup string, err error)
	}
	// gate lets connections to a database, or does not.
	gate interface {
		Drain(ctx context.Context, name string) (connections int, err error)
		Admit(ctx context.Context, name string) error
	}
	// software is what a server runs.
	software interface {
		Install(ctx context.Context, name, version string) error
		Migrate(ctx context.Context, name string) error
		Restart(ctx context.Context, name string) (running string, err error)
	}
	// roles are who may connect.
	roles interface {
		List(ctx context.Context, name string) (users []string, err error)
		Grant(ctx context.Context, name, user string) error
		Revoke(ctx context.Context, name, user string) error
	}
	// replication follows the first server of a database.
	replication interface {
		Lag(ctx context.Context, name string) (time.Duration, error)
	}
)

var (
	errNoServer     = errors.New("there is no such server")
	errBusy         = errors.New("the server is busy")
	errIncompatible = errors.New("the data cannot be migrated")
)

// fleet is a fake of all of that, in memory. It forgets everything when the operator restarts, as no real one would.
type fleet struct {
	mu      sync.Mutex
	servers map[string]*server
	backups int
}

type server struct {
	installed, running string
	size, replicas     int32
	connections        int
	lag                time.Duration
	users              []string
}

func newFleet() *fleet { return &fleet{servers: map[string]*server{}} }

// on does something to a server.
func (f *fleet) on(name string, act func(*server) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.servers[name]
	if s == nil {
		return fmt.Errorf("%s: %w", name, errNoServer)
	}
	return act(s)
}

func (f *fleet) Start(_ context.Context, name, version string, size int32) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers[name] == nil {
		f.servers[name] = &server{installed: version, running: version, connections: 3}
	}
	f.servers[name].size = size
	namespace, short, _ := strings.Cut(name, "/")
	return short + "." + namespace + ".sql.example.org", nil
}

func (f *fleet) Follow(_ context.Context, name string, replica int32) error {
	return f.on(name, func(s *server) error { s.replicas = max(s.replicas, replica); return nil })
}

// Destroy ends connections first, and tells how many there were.
func (f *fleet) Destroy(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.servers[name]; s != nil && s.connections > 0 {
		left := s.connections
		s.connections = 0
		return fmt.Errorf("%s: %d connections: %w", name, left, errBusy)
	}
	delete(f.servers, name)
	return nil
}

func (f *fleet) Backup(_ context.Context, name string) (backup string, err error) {
	err = f.on(name, func(*server) error {
		f.backups++
		backup = fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), f.backups)
		return nil
	})
	return backup, err
}

// Drain takes its time: two connections end between one call and the next.
func (f *fleet) Drain(_ context.Context, name string) (left int, err error) {
	err = f.on(name, func(s *server) error { left = s.connections; s.connections = max(0, left-2); return nil })
	return left, err
}

func (f *fleet) Admit(_ context.Context, name string) error {
	return f.on(name, func(s *server) error { s.connections = 3; return nil })
}

func (f *fleet) Install(_ context.Context, name, version string) error {
	return f.on(name, func(s *server) error { s.installed = version; return nil })
}

// Migrate cannot do it for versions that are not out yet.
func (f *fleet) Migrate(_ context.Context, name string) error {
	return f.on(name, func(s *server) error {
		if strings.Contains(s.installed, "beta") {
			return fmt.Errorf("from %s to %s: %w", s.running, s.installed, errIncompatible)
		}
		return nil
	})
}

// Restart leaves replicas behind for a while, and forgets the last of the users.
func (f *fleet) Restart(_ context.Context, name string) (running string, err error) {
	err = f.on(name, func(s *server) error {
		s.running, s.lag = s.installed, 2*time.Second
		s.users = s.users[:max(0, len(s.users)-1)]
		running = s.running
		return nil
	})
	return running, err
}

func (f *fleet) List(_ context.Context, name string) (users []string, err error) {
	err = f.on(name, func(s *server) error { users = slices.Clone(s.users); return nil })
	return users, err
}

func (f *fleet) Grant(_ context.Context, name, user string) error {
	return f.on(name, func(s *server) error {
		if !slices.Contains(s.users, user) {
			s.users = append(s.users, user)
		}
		return nil
	})
}

func (f *fleet) Revoke(_ context.Context, name, user string) error {
	return f.on(name, func(s *server) error {
		s.users = slices.DeleteFunc(s.users, func(other string) bool { return other == user })
		return nil
	})
}

// Lag gets less from one call to the next.
func (f *fleet) Lag(_ context.Context, name string) (lag time.Duration, err error) {
	err = f.on(name, func(s *server) error { lag = s.lag; s.lag = max(0, lag-time.Second); return nil })
	return lag, err
}
