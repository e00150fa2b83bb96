package memapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

const newEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"new"},"reason":"A","note":"b",` +
	`"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"x.example.org/y","reportingInstance":"z",` +
	`"action":"B","type":"Normal","regarding":{"kind":"Pod","namespace":"default","name":"p"}}`

// playEvents creates events with each of the two event APIs and reads them with the other one.
func playEvents(t *testing.T, genuine, own *player) {
	t.Helper()
	const older = "/api/v1/namespaces/default/events"
	const newer = "/apis/events.k8s.io/v1/namespaces/default/events"
	for i, step := range []clusterStep{
		{"POST", older, jsonContentType, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"old"},"reason":"A",` +
			`"message":"b","involvedObject":{"kind":"Pod","namespace":"default","name":"p"},` +
			`"count":2,"type":"Normal",` +
			`"source":{"component":"c"},"firstTimestamp":"2026-01-02T03:04:05Z"}`},
		{"GET", newer + "/old", "", ""},
		{"GET", newer + "?fieldSelector=regarding.name%3Dp", "", ""},
		{"GET", newer + "?fieldSelector=involvedObject.name%3Dp", "", ""},
		{"PATCH", newer + "/old", mergePatchType, `{"metadata":{"labels":{"a":"b"}}}`},
		{"GET", older + "/old", "", ""},
		{"POST", newer, jsonContentType, newEvent},
		{"POST", newer, jsonContentType, newEvent},
		{"GET", older + "/new", "", ""},
		{"GET", older + "?fieldSelector=involvedObject.name%3Dp,reportingComponent%3Dx.example.org/y", "", ""},
		{"DELETE", older + "/new", "", ""},
		{"GET", newer + "/new", "", ""},
		{"DELETE", newer + "/old", "", ""},
		{"GET", older + "/old", "", ""},
	} {
		if d := diff.Diff(genuine.eventStep(step), own.eventStep(step)); d != "" {
			t.Errorf("step %d: %s %s: -real, +memory:\n%s", i, step.method, step.path, d)
		}
	}
}

// eventStep returns the code and the comparable parts of an event, a list of events, or a refusal.
func (p *player) eventStep(step clusterStep) (told []any) {
	p.t.Helper()
	response := p.send(step.method, p.host+step.path, step.contentType, step.body)
	defer func() { _ = response.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	if step.method == http.MethodDelete {
		return []any{response.StatusCode, answer["status"]}
	}
	list, _ := answer["items"].([]any)
	for _, one := range append(list, answer) {
		object, _ := one.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		for _, none := range []string{"items", "apiVersion", "kind"} { // the real server omits them in lists
			delete(object, none)
		}
		object["metadata"] = []any{metadata["name"], metadata["labels"]}
		for name, value := range object {
			// The types of the real server write some empty fields as well.
			if content, ok := value.(map[string]any); value == nil || value == "" || ok && len(content) == 0 {
				delete(object, name)
			}
		}
		told = append(told, object)
	}
	return append(told, response.StatusCode)
}
