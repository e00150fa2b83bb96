package memapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listPage is one page of a list.
type listPage struct {
	Code      int
	Names     []string
	Remaining *int64
	HasMore   bool
}

// playPages lists the objects of both servers in pages while objects are created.
func playPages(t *testing.T, genuine, own *player) {
	create := func(name string) {
		for _, p := range []*player{genuine, own} {
			p.play(request{
				method: http.MethodPost, kind: widgets, contentType: jsonContentType,
				body: object(widgets, name, `,"labels":{"part":"1"}`, content(widgets, "x")),
			})
		}
	}
	for i := range 5 {
		create(fmt.Sprintf("part-%d", 2*i))
	}
	for number, query := range []string{
		"limit=2", "limit=2&labelSelector=part%3D1", "limit=5&labelSelector=part%3D1",
		"limit=2&labelSelector=part%3D1&resourceVersion=0",
	} {
		parts := func(p *player) (all []listPage) {
			for token := ""; ; {
				one, next := p.readPage(query + "&continue=" + url.QueryEscape(token))
				all, token = append(all, one), next
				if token == "" || len(all) > 100 {
					return all
				}
			}
		}
		create(fmt.Sprintf("part-%d", 2*number+1))
		genuine.awaitCache(widgets)
		want, got := parts(genuine), parts(own)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("a list by %s: -real, +memory:\n%s", query, d)
		}
		t.Logf("%d parts by %s", len(want), query)
	}
	// An object that is created after the first page is not in the following ones.
	var tokens [2]string
	for i, p := range []*player{genuine, own} {
		_, tokens[i] = p.readPage("limit=2&labelSelector=part%3D1")
	}
	create("part-7x")
	var rest [2]listPage
	for i, p := range []*player{genuine, own} {
		rest[i], _ = p.readPage("limit=100&labelSelector=part%3D1&continue=" + url.QueryEscape(tokens[i]))
	}
	if d := cmp.Diff(rest[0], rest[1]); d != "" {
		t.Errorf("the rest of a list: -real, +memory:\n%s", d)
	}
}

// awaitCache waits until the cache of the server, which serves lists of any version, contains the present objects.
func (p *player) awaitCache(kind string) {
	p.t.Helper()
	query := "resourceVersionMatch=NotOlderThan&resourceVersion=" + p.version(kind)
	response := p.send(http.MethodGet, p.url(kind, "", "", "", query), "", "")
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("waiting for the cache of %s: %s", kind, response.Status)
	}
}

func (p *player) readPage(query string) (one listPage, token string) {
	p.t.Helper()
	response := p.send(http.MethodGet, p.url(widgets, "", "", "", query), "", "")
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Metadata struct {
			Continue           string
			RemainingItemCount *int64
		}
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		p.t.Fatal(err)
	}
	one = listPage{
		Code: response.StatusCode, Remaining: list.Metadata.RemainingItemCount, HasMore: list.Metadata.Continue != "",
	}
	for _, item := range list.Items {
		name := item.Metadata.Name
		if made, ok := strings.CutPrefix(name, "g-"); ok {
			name = fmt.Sprintf("g- and %d more", len(made))
		}
		one.Names = append(one.Names, name)
	}
	return one, list.Metadata.Continue
}

// playMetadata watches only the metadata of objects.
func playMetadata(t *testing.T, genuine, own *player) {
	seen := func(p *player) []normalizedResponse {
		from := p.version(gadgets)
		create := func(name string) {
			body := object(gadgets, name, "", content(gadgets, "x"))
			p.play(request{method: http.MethodPost, kind: gadgets, contentType: jsonContentType, body: body})
		}
		create("meta")
		p.play(request{method: http.MethodDelete, kind: gadgets, name: "meta"})
		create("meta-end")
		p.accept = partialObject
		defer func() { p.accept = jsonContentType }()
		return p.events(gadgets, "resourceVersion="+from, "meta-end")
	}
	want, got := seen(genuine), seen(own)
	if d := cmp.Diff(want, got); d != "" || len(want) != 2 {
		t.Errorf("%d events with metadata alone: -real, +memory:\n%s", len(want), d)
	}
	for _, kind := range []string{gadgets, configmaps} {
		genuine.awaitCache(kind)
		want, got := genuine.streamed(kind), own.streamed(kind)
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("a list of %d %s as a stream, with metadata alone: -real, +memory:\n%s", len(want), kind, d)
		}
		t.Logf("%d %s as a stream", len(want), kind)
	}
}

// streamed lists the metadata of the objects with a label as a stream that ends with a bookmark.
func (p *player) streamed(kind string) (all []normalizedResponse) {
	p.t.Helper()
	p.accept = partialObject
	defer func() { p.accept = jsonContentType }()
	response := p.send(http.MethodGet, p.url(kind, "", "", "", "watch=true&sendInitialEvents=true&labelSelector=l&"+
		"allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion="), "", "")
	defer func() { _ = response.Body.Close() }()
	for events := json.NewDecoder(response.Body); ; {
		var event map[string]any
		if err := events.Decode(&event); err != nil {
			p.t.Fatalf("listing %s as a stream: %v", kind, err)
		}
		object, _ := event["object"].(map[string]any)
		if event["type"] == "BOOKMARK" { // its version is the latest of the whole server
			metadata, _ := object["metadata"].(map[string]any)
			return append(all, normalizedResponse{Body: []any{object["kind"], object["apiVersion"],
				metadata["annotations"]}})
		}
		event["object"] = p.normal(object, request{})
		all = append(all, normalizedResponse{Body: event})
	}
}
