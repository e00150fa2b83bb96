package memapi_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestShardSelector shows without a real server what [playShards] compares with one.
func TestShardSelector(t *testing.T) {
	p := newPlayer(t, "http://mem", inMemory(t))
	p.createShards()
	p.checkMalformed()
	for _, path := range []string{shardWidgets, shardSecrets} {
		p.checkHalves(path)
		// Of each object: an addition, then a change and a deletion; one bookmark marks the end of the additions.
		if events := p.shardStream(path); len(events) != 3*9+1 {
			t.Errorf("a watch of three namespaces has the events of nine objects alone: %d: %v", len(events), events)
		}
	}
}

// TestIgnoreShardSelector shows a server without the feature gate.
func TestIgnoreShardSelector(t *testing.T) {
	server := inMemory(t)
	server.IgnoreShardSelector()
	p := newPlayer(t, "http://mem", server)
	p.createShards()
	for _, selector := range []string{lowerHalf, someNamespaces, "malformed"} {
		query := "shardSelector=" + url.QueryEscape(selector)
		got := p.shardPages(http.MethodGet, shardSecrets, query)[0]
		if keys, _ := got["keys"].([]string); len(keys) != 15 || got["shardInfo"] != nil {
			t.Errorf("a list with the selector %q has all objects, and does not name the selector: %v", selector, got)
		}
	}
	if events := p.shardStream(shardSecrets); len(events) != 3*15+1 {
		t.Errorf("a watch has the events of all objects: %d: %v", len(events), events)
	}
}
