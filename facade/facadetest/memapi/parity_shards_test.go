package memapi_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	lowerHalf = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	upperHalf = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
	// someNamespaces selects the objects in the namespaces five, three and two, but not those in four and one.
	someNamespaces = "shardRange(object.metadata.namespace, '0x5000000000000000', '0x6000000000000000') || " +
		"shardRange(object.metadata.namespace,'0xa000000000000000','0xb000000000000000')"
	shardWidgets = "/apis/memapi.example.org/v1/widgets"
	shardSecrets = "/api/v1/secrets"
)

var shardNamespaces = []string{"one", "two", "three", "four", "five"}

// malformedShards are shard selectors that the real server refuses. The details of its messages are not compared.
var malformedShards = []string{
	" ", "x", "'0x0'", "f(object)", lowerHalf + " || ", lowerHalf + ")", withLower(")", ", )"), "!" + lowerHalf,
	withLower("object.metadata.uid", "'a'"), lowerHalf + " || x", lowerHalf + " && " + upperHalf,
	"shardRange(object.metadata.uid, 0, 8)", "shardRange(object.metadata.uid)", withLower("uid", "name"),
	withLower("object.", ""), withLower("0x8", "8"), withLower("0x0", "0x"), withLower("0x0", "0xA"),
	withLower("0x8", "0x20"), withLower("0x8", "0x0"), lowerHalf + " || " + someNamespaces,
}

// withLower returns the selector of the lower half with another text in the place of a part.
func withLower(part, instead string) string { return strings.Replace(lowerHalf, part, instead, 1) }

// playShards lists and watches parts of the objects on both servers. The hash of a namespace is equal on both, that of
// a uid is not.
func playShards(t *testing.T, genuine, own *player) {
	for _, p := range []*player{genuine, own} {
		p.createShards()
	}
	for _, path := range []string{shardWidgets, shardSecrets, "/api/v1/namespaces/two/secrets"} {
		for _, query := range []string{
			"", "limit=1", "limit=2", "limit=4", "limit=9", "limit=10", "limit=2&labelSelector=shard%3Da",
			"limit=2&resourceVersion=0", "labelSelector=shard%3Db", "limit=1&fieldSelector=metadata.name%3Db",
		} {
			for _, selector := range []string{"", someNamespaces, "(" + someNamespaces + ")"} {
				query := query + "&shardSelector=" + url.QueryEscape(selector)
				if d := cmp.Diff(genuine.shardPages("GET", path, query), own.shardPages("GET", path, query)); d != "" {
					t.Errorf("the pages of %s by %s: -real, +memory:\n%s", path, query, d)
				}
			}
		}
	}
	if d := cmp.Diff(genuine.shardsContinued(), own.shardsContinued()); d != "" {
		t.Errorf("the rest of a list of a part, without its selector: -real, +memory:\n%s", d)
	}
	for _, path := range []string{shardWidgets, shardSecrets} {
		for _, p := range []*player{genuine, own} {
			p.checkHalves(path)
		}
		for _, ns := range []string{"four", "five"} { // of which one is in the part
			in := strings.Replace(path, "v1/", "v1/namespaces/"+ns+"/", 1)
			query := "shardSelector=" + url.QueryEscape(someNamespaces)
			if d := cmp.Diff(genuine.shardPages("DELETE", in, query), own.shardPages("DELETE", in, query)); d != "" {
				t.Errorf("the deletion of a part of %s: -real, +memory:\n%s", in, d)
			}
		}
		if d := cmp.Diff(genuine.shardStream(path), own.shardStream(path)); d != "" {
			t.Errorf("a watch of a part of %s: -real, +memory:\n%s", path, d)
		}
	}
	genuine.checkMalformed()
	own.checkMalformed()
}

// createShards creates three widgets and three secrets in each of five namespaces.
func (p *player) createShards() {
	p.t.Helper()
	for _, ns := range shardNamespaces {
		p.createIn("/api/v1/namespaces", "v1", "Namespace", "", ns)
		for _, name := range []string{"a", "b", "c"} {
			p.createIn("/apis/memapi.example.org/v1", "memapi.example.org/v1", "Widget", ns, name)
			p.createIn("/api/v1", "v1", "Secret", ns, name)
		}
	}
}

// checkMalformed sends malformed selectors with lists, watches and deletions of collections.
func (p *player) checkMalformed() {
	p.t.Helper()
	for _, selector := range malformedShards {
		for _, query := range []string{"", "&watch=true", "&watch=true&resourceVersion=1"} {
			got := p.shardPages(http.MethodGet, shardSecrets, "shardSelector="+url.QueryEscape(selector)+query)[0]
			if message := fmt.Sprint(got["message"]); got["code"] != http.StatusInternalServerError ||
				got["reason"] != nil || !strings.HasPrefix(message, "invalid shard selector: ") {
				p.t.Errorf("%s: the selector %q is refused with 500: %s: %v", p.host, selector, query, got)
			}
		}
	}
}

// createIn creates an object with its name as a label, in a namespace unless that is empty.
func (p *player) createIn(path, version, kind, namespace, name string) {
	p.t.Helper()
	if namespace != "" {
		path += "/namespaces/" + namespace + "/" + strings.ToLower(kind) + "s"
	}
	response := p.send(http.MethodPost, p.host+path, jsonContentType, fmt.Sprintf(
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"labels":{"shard":%[3]q}}}`, version, kind, name,
	))
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		p.t.Errorf("creating %s/%s: %s", namespace, name, response.Status)
	}
}

// shardPages returns the pages of a list: the keys of its objects and what its metadata says.
func (p *player) shardPages(method, path, query string) (pages []map[string]any) {
	p.t.Helper()
	for token := ""; ; {
		rest := ""
		if token != "" {
			rest = "&continue=" + url.QueryEscape(token)
		}
		answer := p.document(method, path+"?"+query+rest)
		metadata, _ := answer["metadata"].(map[string]any)
		token, _ = metadata["continue"].(string)
		items, _ := answer["items"].([]any)
		pages = append(pages, map[string]any{
			"code": answer["httpCode"], "reason": answer["reason"], "message": answer["message"], "keys": keysOf(items),
			"remaining": metadata["remainingItemCount"], "shardInfo": metadata["shardInfo"], "continues": token != "",
		})
		if token == "" || len(pages) > 100 {
			return pages
		}
	}
}

// shardsContinued lists a part, and goes on without the selector.
func (p *player) shardsContinued() []map[string]any {
	p.t.Helper()
	query := "?limit=2&shardSelector=" + url.QueryEscape(someNamespaces)
	metadata, _ := p.document(http.MethodGet, shardSecrets+query)["metadata"].(map[string]any)
	token, _ := metadata["continue"].(string)
	return p.shardPages(http.MethodGet, shardSecrets, "limit=100&continue="+url.QueryEscape(token))
}

// document returns an answer with its HTTP code.
func (p *player) document(method, path string) map[string]any {
	p.t.Helper()
	response := p.send(method, p.host+path, "", "")
	defer func() { _ = response.Body.Close() }()
	answer := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	answer["httpCode"] = response.StatusCode
	return answer
}

// keysOf returns the namespaces and names of objects.
func keysOf(items []any) (keys []string) {
	for _, item := range items {
		object, _ := item.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		name := fmt.Sprint(metadata["name"])
		if strings.HasPrefix(name, "g-") {
			name = "g-and-five-more"
		}
		keys = append(keys, fmt.Sprint(metadata["namespace"], "/", name))
	}
	return keys
}

// checkHalves lists both halves of the objects by their uids, as complete objects and as metadata only.
func (p *player) checkHalves(path string) {
	p.t.Helper()
	defer func() { p.accept = jsonContentType }()
	for _, p.accept = range []string{jsonContentType, partialList} {
		all, _ := p.document(http.MethodGet, path)["items"].([]any)
		found := 0
		for want, selector := range []string{lowerHalf, upperHalf} {
			answer := p.document(http.MethodGet, path+"?shardSelector="+url.QueryEscape(selector))
			items, _ := answer["items"].([]any)
			for _, item := range items {
				uid := item.(map[string]any)["metadata"].(map[string]any)["uid"].(string)
				hash := fnv.New64a()
				_, _ = hash.Write([]byte(uid))
				if got := int(hash.Sum64() >> 63); got != want {
					p.t.Errorf("%s: the uid %s belongs into half %d, and was in half %d", p.host, uid, got, want)
				}
			}
			found += len(items)
			info := answer["metadata"].(map[string]any)["shardInfo"]
			if says := path == shardSecrets && p.accept == jsonContentType; says != (info != nil) {
				p.t.Errorf("%s: complete lists of built-in kinds alone name the selector: %s, %v", p.host, path, info)
			}
		}
		if len(all) < 15 || found != len(all) {
			p.t.Errorf("%s: both halves have all %d objects of %s, got %d", p.host, len(all), path, found)
		}
	}
}

// shardStream returns the events of a streamed list of some namespaces, and of changes after it. Then it removes the
// objects.
func (p *player) shardStream(path string) (events []string) {
	p.t.Helper()
	response := p.send(http.MethodGet, p.host+path+"?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&"+
		"resourceVersionMatch=NotOlderThan&shardSelector="+url.QueryEscape(someNamespaces), "", "")
	defer func() { _ = response.Body.Close() }()
	for decoder := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   string
			Object map[string]any
		}
		if err := decoder.Decode(&event); err != nil {
			p.t.Fatalf("watching %s: %v", path, err)
		}
		key := keysOf([]any{event.Object})[0]
		metadata, _ := event.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		isEndOfList := annotations["k8s.io/initial-events-end"] == "true"
		// A real API server sends more bookmarks if a watch takes long.
		if event.Type == "BOOKMARK" && !isEndOfList {
			continue
		}
		events = append(events, event.Type+" "+key)
		if isEndOfList {
			p.changeAll(path)
		}
		if event.Type == "DELETED" && key == "two/c" {
			return events
		}
	}
}

// changeAll changes and deletes the objects of all namespaces.
func (p *player) changeAll(path string) {
	p.t.Helper()
	group, plural := path[:strings.LastIndex(path, "/")], path[strings.LastIndex(path, "/")+1:]
	for _, ns := range []string{"one", "five", "three", "four", "two"} { // the last is in the watched part
		for _, name := range []string{"a", "b", "c"} {
			one := p.host + group + "/namespaces/" + ns + "/" + plural + "/" + name
			_ = p.send(http.MethodPatch, one, mergePatchType, `{"metadata":{"labels":{"shard":"x"}}}`).Body.Close()
			_ = p.send(http.MethodDelete, one, "", "").Body.Close()
		}
	}
}
