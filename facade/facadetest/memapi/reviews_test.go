package memapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// reviewLog is a reviewer that records its requests, adds a field, and refuses deletions. During its first review of an
// update, another client changes the object.
type reviewLog struct {
	server  *memapi.Server
	entries []string
}

var mapsResource = memapi.Resource{
	Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true, Plain: true,
}

func (l *reviewLog) review(
	_ context.Context, mutating bool, r *admissionv1.AdmissionRequest,
) ([]byte, []string, error) {
	var now, before struct {
		Data map[string]string `json:"data"`
	}
	_ = json.Unmarshal(r.Object.Raw, &now) // empty for a deletion
	_ = json.Unmarshal(r.OldObject.Raw, &before)
	stage := "validating "
	if mutating {
		stage = "mutating "
	}
	l.entries = append(l.entries, stage+string(r.Operation)+" from "+before.Data["owner"]+" to "+now.Data["owner"])
	if r.Operation == admissionv1.Update && len(l.entries) == 3 {
		l.server.Edit(mapsResource, "default", "a", func(object map[string]any) {
			object["data"] = map[string]any{"owner": "theirs"}
		})
	}
	if !mutating && r.Operation == admissionv1.Delete {
		return nil, nil, memapi.NewRefusal(http.StatusForbidden)
	}
	if !mutating {
		return nil, []string{"reviewed"}, nil
	}
	var object map[string]any
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
		return nil, nil, err
	}
	object["immutable"] = false
	text, err := json.Marshal(object)
	return text, nil, err
}

// TestReviewers shows that each stored state was reviewed: a change during a review causes another one, as in the real
// server.
func TestReviewers(t *testing.T) {
	server := memapi.New()
	log := &reviewLog{server: server}
	alive := true
	server.AddReviewer(log.review, func() bool { return alive })
	p := newPlayer(t, "http://mem", server)
	send := func(method, name, form, body string) int {
		return p.play(request{method: method, kind: configmaps, name: name, contentType: form, body: body}).Code
	}
	codes := []int{
		send(http.MethodPost, "", jsonContentType, object(configmaps, "a", "", content(configmaps, "x"))),
		send(http.MethodPatch, "a", mergePatchType, `{"data":{"owner":"y"}}`),
		send(http.MethodDelete, "a", "", ""),
	}
	if d := cmp.Diff([]int{http.StatusCreated, http.StatusOK, http.StatusForbidden}, codes); d != "" {
		t.Errorf("the codes of the answers (-want, +got):\n%s", d)
	}
	want := []string{
		"mutating CREATE from  to x", "validating CREATE from  to x",
		"mutating UPDATE from x to y", "mutating UPDATE from theirs to y", "validating UPDATE from theirs to y",
		"validating DELETE from y to ",
	}
	if d := cmp.Diff(want, log.entries); d != "" {
		t.Errorf("the reviews, with another one for the changed object (-want, +got):\n%s", d)
	}
	if got, ok := server.Object(mapsResource, "default", "a")["immutable"]; !ok || got != false {
		t.Errorf("the reviewer's change must be stored, got %v", got)
	}
	alive = false
	remove := server.AddReviewer(func(
		context.Context, bool, *admissionv1.AdmissionRequest,
	) ([]byte, []string, error) {
		return nil, nil, nil
	}, func() bool { return true })
	if code := send(http.MethodDelete, "a", "", ""); code != http.StatusOK {
		t.Errorf("a new reviewer must replace one that is not alive: got %d", code)
	}
	remove()
}

// stampingReviewer is a reviewer that writes the number of the review into all parts of objects.
type stampingReviewer struct{ lastNumber int }

func (a *stampingReviewer) review(
	_ context.Context, mutating bool, r *admissionv1.AdmissionRequest,
) ([]byte, []string, error) {
	var object map[string]any
	if err := json.Unmarshal(r.Object.Raw, &object); err != nil || !mutating {
		return nil, nil, err
	}
	a.lastNumber++
	metadata, _ := object["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"by": strconv.Itoa(a.lastNumber)}
	object["spec"], object["status"] = map[string]any{"by": a.lastNumber}, map[string]any{"by": a.lastNumber}
	text, err := json.Marshal(object)
	return text, nil, err
}

// TestReviewersChangeWhatThePathPermits shows that the path of a request limits the changes of mutating webhooks to the
// status, or to everything else.
func TestReviewersChangeWhatThePathPermits(t *testing.T) {
	server := inMemory(t)
	server.AddReviewer(new(stampingReviewer).review, func() bool { return true })
	p := newPlayer(t, "http://mem", server)
	// parts are the label, the spec and the status of the stored object.
	parts := func() string {
		stored := server.Object(widget, "default", "a")
		metadata, _ := stored["metadata"].(map[string]any)
		return fmt.Sprint(metadata["labels"], stored["spec"], stored["status"])
	}
	for _, step := range []struct {
		reason string
		sent   request
		want   string
	}{
		{
			"a creation drops the status that a reviewer sets",
			request{
				method: http.MethodPost, kind: widgets, contentType: jsonContentType,
				body: object(widgets, "a", "", content(widgets, "x")),
			},
			"map[by:1] map[by:1] <nil>",
		},
		{
			"a write of the main resource drops a reviewer's status",
			request{method: http.MethodPatch, kind: widgets, name: "a", contentType: mergePatchType,
				body: `{"spec":{"size":2}}`},
			"map[by:2] map[by:2] <nil>",
		},
		{
			"a write of the status keeps only a reviewer's status",
			request{
				method: http.MethodPatch, kind: widgets, name: "a", subresource: "status", contentType: mergePatchType,
				body: `{"status":{"size":3}}`,
			},
			"map[by:2] map[by:2] map[by:3]",
		},
	} {
		if code := p.play(step.sent).Code; code >= http.StatusBadRequest {
			t.Fatalf("%s: status %d", step.reason, code)
		}
		if got := parts(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.reason, got, step.want)
		}
	}
}
