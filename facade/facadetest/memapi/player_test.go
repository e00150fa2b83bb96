package memapi_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// player sends the script to one server and keeps the answers in a comparable form.
type player struct {
	t         *testing.T
	host      string
	transport http.RoundTripper
	accept    string // the media types of answers
	// namespace is the namespace of all requests.
	namespace       string
	identities      map[string]identity // by kind and name
	versionOrdinals map[string]int      // of versions, by their first appearance
	uidOrdinals     map[string]int
}

// identity holds the present and previous uid and version of an object.
type identity struct{ uid, oldUID, version, oldVersion string }

func newPlayer(t *testing.T, host string, through http.RoundTripper) *player {
	return &player{
		t: t, host: host, transport: through, namespace: "default", identities: map[string]identity{},
		versionOrdinals: map[string]int{}, uidOrdinals: map[string]int{}, accept: jsonContentType,
	}
}

// normalizedResponse is the comparable part of an answer.
type normalizedResponse struct {
	Code     int
	Warnings []string
	Body     any
}

func (p *player) url(kind, version, name, sub, query string) string {
	path := "/apis/memapi.example.org/" + cmp.Or(version, "v1")
	if kind == configmaps || kind == pods {
		path = "/api/v1"
	}
	path += "/namespaces/" + p.namespace + "/" + kind
	for _, part := range []string{name, sub} {
		if part != "" {
			path += "/" + part
		}
	}
	if query != "" {
		path += "?" + query
	}
	return p.host + path
}

func (p *player) send(method, url, form, body string) *http.Response {
	p.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, url, content)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Accept", p.accept)
	r.Header.Set("User-Agent", "player/1")
	if form != "" {
		r.Header.Set("Content-Type", form)
	}
	response, err := p.transport.RoundTrip(r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, url, err)
	}
	return response
}

// play sends one request of the script.
func (p *player) play(r request) normalizedResponse {
	p.t.Helper()
	key := r.kind + "/" + r.name
	if r.name == "" && r.method == http.MethodPost {
		key = r.kind + "/" + nameIn(r.body)
	}
	id := p.identities[key]
	body := strings.NewReplacer(
		"{uid}", id.uid, "{rv}", id.version, "{old}", id.oldVersion, "{old-uid}", id.oldUID,
	).Replace(r.body)
	p.accept = cmp.Or(r.accept, jsonContentType)
	defer func() { p.accept = jsonContentType }()
	response := p.send(r.method, p.url(r.kind, r.version, r.name, r.subresource, r.query), r.contentType, body)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(data, &answer)
	p.rememberIdentity(key, answer)
	return normalizedResponse{response.StatusCode, response.Header.Values("Warning"), p.normal(answer, r)}
}

func nameIn(body string) string {
	var object struct {
		Metadata struct{ Name string }
	}
	_ = json.Unmarshal([]byte(body), &object)
	return object.Metadata.Name
}

func (p *player) rememberIdentity(key string, object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	version, _ := metadata["resourceVersion"].(string)
	id := p.identities[key]
	if uid != "" && uid != id.uid {
		id.uid, id.oldUID = uid, id.uid
	}
	if uid != "" && version != id.version {
		id.version, id.oldVersion = version, id.version
	}
	p.identities[key] = id
}

// events reads a watch until it shows the object with the given name.
func (p *player) events(kind, query, last string) []normalizedResponse {
	p.t.Helper()
	response := p.send(http.MethodGet, p.url(kind, "", "", "", "watch=true&"+query), "", "")
	defer func() { _ = response.Body.Close() }()
	var all []normalizedResponse
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			p.t.Fatalf("watching %s: %v", kind, err)
		}
		var event map[string]any
		if err := json.Unmarshal(line, &event); err != nil {
			p.t.Fatal(err)
		}
		object, _ := event["object"].(map[string]any)
		if metadata, _ := object["metadata"].(map[string]any); metadata["name"] == last {
			return all
		}
		event["object"] = p.normal(object, request{})
		all = append(all, normalizedResponse{Body: event})
	}
}

// list returns the objects of a kind.
func (p *player) list(kind string) []map[string]any {
	p.t.Helper()
	response := p.send(http.MethodGet, p.url(kind, "", "", "", ""), "", "")
	defer func() { _ = response.Body.Close() }()
	var list struct{ Items []map[string]any }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		p.t.Fatalf("listing %s: %v", kind, err)
	}
	return list.Items
}

// version returns the version of the whole collection. A server that is still setting up a kind answers 429.
func (p *player) version(kind string) string {
	p.t.Helper()
	for {
		response := p.send(http.MethodGet, p.url(kind, "", "", "", ""), "", "")
		var list struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			}
		}
		err := json.NewDecoder(response.Body).Decode(&list)
		_ = response.Body.Close()
		switch {
		case response.StatusCode == http.StatusTooManyRequests:
			time.Sleep(100 * time.Millisecond)
		case response.StatusCode != http.StatusOK || err != nil:
			p.t.Fatalf("listing %s: %s, %v", kind, response.Status, err)
		default:
			return list.Metadata.ResourceVersion
		}
	}
}
