package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// memoryHosting stands for the service. It is busy when it is billed for the first time.
type memoryHosting struct {
	mu          sync.Mutex
	busy        bool
	files       map[string]string // texts by names
	servers     map[string]string // labels by ids
	bills       map[string]string // texts by tokens
	serverCount int
}

var _ hosting = (*memoryHosting)(nil)

func newMemoryHosting() *memoryHosting {
	return &memoryHosting{
		busy: true, files: map[string]string{}, servers: map[string]string{}, bills: map[string]string{},
	}
}

func (m *memoryHosting) Upload(_ context.Context, name, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = text
	return nil
}

func (m *memoryHosting) FindServer(_ context.Context, label string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, of := range m.servers {
		if of == label {
			return id, nil
		}
	}
	return "", nil
}

func (m *memoryHosting) RentServer(_ context.Context, label string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serverCount++
	id := fmt.Sprint("server-", m.serverCount)
	m.servers[id] = label
	return id, nil
}

func (m *memoryHosting) Bill(_ context.Context, token, text string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		m.busy = false
		return errors.New("the service is busy")
	}
	m.bills[token] = text
	return nil
}

func (m *memoryHosting) Remove(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, isFile := m.files[name]
	_, isServer := m.servers[name]
	if !isFile && !isServer {
		return errNotFound
	}
	delete(m.files, name)
	delete(m.servers, name)
	return nil
}

// content returns everything that is left, without uids.
func (m *memoryHosting) content() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []string{fmt.Sprintf("%d files, servers %v", len(m.files), slices.Sorted(maps.Keys(m.servers)))}
	return append(all, slices.Sorted(maps.Values(m.bills))...)
}
