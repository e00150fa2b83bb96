package server_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/webhooks/internal/server"
)

// statuses are the status codes of Kopf's errors, as in package webhooks/review.
var statuses = map[string]int{
	"AmbiguousResourceError": http.StatusConflict, "UnknownResourceError": http.StatusNotFound,
	"MissingDataError": http.StatusBadRequest, "WebhookError": http.StatusBadRequest,
}

func TestVectorsAdmissionServer(t *testing.T) {
	vectors.Run(t, "admission_server", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		d := vectors.Known(t, map[string]any(input), "body", "error", "id")
		double := &reviewer{}
		if d["error"] != nil {
			status, known := statuses[d.Text("error", "")]
			if !known {
				t.Fatalf("the harness does not know the error %v", d["error"])
			}
			double.err = unanswered(status)
		}
		// Here, the root calls all handlers, so it does not have an id. In Kopf, it has an empty id, which no handler
		// has.
		id := d.Text("id", "")
		s := serve(t, server.Options{Reviewer: double, Endpoints: []server.Endpoint{{Path: id, Handler: id}}})
		answer := post(t, s, "/"+url.PathEscape(id), d.Text("body", ""))
		got := map[string]any{"status": int64(answer.status)}
		if answer.status == http.StatusOK {
			got["content_type"], got["webhook"] = answer.header.Get("Content-Type"), ""
			if hint := double.last(t).HandlerID; hint != nil {
				got["webhook"] = *hint
			}
		}
		if delta := cmp.Diff(want.Value, any(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}
