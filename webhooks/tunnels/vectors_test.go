package tunnels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/vectors"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

func TestVectorsAdmissionServerURL(t *testing.T) {
	vectors.Run(t, "admission_server_url", func(t *testing.T, input vectors.Fields, want vectors.Expected) {
		d := vectors.Known(t, map[string]any(input), "addr", "host", "op", "path", "port", "schema")
		var got map[string]any
		switch d["op"] {
		case "url":
			port := int(*vectors.Number(t, d, "port"))
			got = map[string]any{
				"url": tunnels.URL(d.Text("schema", ""), d.Text("host", ""), port, d.Text("path", "")),
			}
		case "addr":
			got = map[string]any{"addr": tunnels.Routable(d.Text("addr", ""))}
		default:
			t.Fatalf("the harness does not know the operation %v", d["op"])
		}
		if delta := cmp.Diff(want.Value, any(got)); delta != "" {
			t.Errorf("-want, +got:\n%s", delta)
		}
	})
}
