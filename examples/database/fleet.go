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

// The API of the servers that the handlers use. All calls are idempotent.
type (
	// machines are the servers, by the names of their databases.
	machines interface {
		Start(ctx context.Context, name, version string, size int32) (host string, err error)
		Follow(ctx context.Context, name string, replica int32) error
		Destroy(ctx context.Context, name string) error
	}
	// archive stores backups.
	archive interface {
		Backup(ctx context.Context, name string) (backup string, err error)
	}
	// gate allows or blocks connections to a database.
	gate interface {
		Drain(ctx context.Context, name string) (connections int, err error)
		Admit(ctx context.Context, name string) error
	}
	// software is the database software of a server.
	software interface {
		Install(ctx context.Context, name, version string) error
		Migrate(ctx context.Context, name string) error
		Restart(ctx context.Context, name string) (running string, err error)
	}
	// roles are the users of a server.
	roles interface {
		List(ctx context.Context, name string) (users []string, err error)
		Grant(ctx context.Context, name, user string) error
		Revoke(ctx context.Context, name, user string) error
	}
	// replication reports the lag of the replicas.
	replication interface {
		Lag(ctx context.Context, name string) (time.Duration, error)
	}
)

var (
	errNoServer     = errors.New("there is no such server")
	errBusy         = errors.New("the server is busy")
	errIncompatible = errors.New("the data cannot be migrated")
)

// fleet implements all of these interfaces in memory. Unlike real servers, it loses its state when the operator
// restarts.
type fleet struct {
	mu      sync.Mutex
	servers map[string]*server
	backups int
}

type server struct {
	installedVersion, runningVersion string
	size, replicas                   int32
	connections                      int
	lag                              time.Duration
	users                            []string
}

func newFleet() *fleet { return &fleet{servers: map[string]*server{}} }

// on calls a function with a server.
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
		f.servers[name] = &server{installedVersion: version, runningVersion: version, connections: 3}
	}
	f.servers[name].size = size
	namespace, short, _ := strings.Cut(name, "/")
	return short + "." + namespace + ".sql.example.org", nil
}

func (f *fleet) Follow(_ context.Context, name string, replica int32) error {
	return f.on(name, func(s *server) error { s.replicas = max(s.replicas, replica); return nil })
}

// Destroy ends connections first. If there were any, it returns an error with their number.
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

// Drain is slow: two connections end between one call and the next.
func (f *fleet) Drain(_ context.Context, name string) (left int, err error) {
	err = f.on(name, func(s *server) error { left = s.connections; s.connections = max(0, left-2); return nil })
	return left, err
}

func (f *fleet) Admit(_ context.Context, name string) error {
	return f.on(name, func(s *server) error { s.connections = 3; return nil })
}

func (f *fleet) Install(_ context.Context, name, version string) error {
	return f.on(name, func(s *server) error { s.installedVersion = version; return nil })
}

// Migrate fails for beta versions.
func (f *fleet) Migrate(_ context.Context, name string) error {
	return f.on(name, func(s *server) error {
		if strings.Contains(s.installedVersion, "beta") {
			return fmt.Errorf("from %s to %s: %w", s.runningVersion, s.installedVersion, errIncompatible)
		}
		return nil
	})
}

// Restart causes a lag of the replicas for a while, and loses the last user.
func (f *fleet) Restart(_ context.Context, name string) (running string, err error) {
	err = f.on(name, func(s *server) error {
		s.runningVersion, s.lag = s.installedVersion, 2*time.Second
		s.users = s.users[:max(0, len(s.users)-1)]
		running = s.runningVersion
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

// Lag decreases from one call to the next.
func (f *fleet) Lag(_ context.Context, name string) (lag time.Duration, err error) {
	err = f.on(name, func(s *server) error { lag = s.lag; s.lag = max(0, lag-time.Second); return nil })
	return lag, err
}
