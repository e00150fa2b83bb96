package memapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// mostBytes is how long a body may be: that of the real server.
const mostBytes = 3 << 20

const plainJSON = "application/json"

// negotiated judges what a request asks for whatever it is about: the forms of its body and of the answer, of which
// partial is one that has the metadata alone.
func negotiated(r *http.Request, body []byte) (partial bool, err error) {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return false, unsupported("impersonation (%s)", name)
		}
	}
	if len(body) > mostBytes {
		return false, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", mostBytes))
	}
	form := formOf(r)
	if len(body) > 0 && form != "" && form != plainJSON && r.Method != http.MethodPatch {
		return false, unsupported("bodies in the form %s", form)
	}
	return presentation(r)
}

// formOf is the type of the body, without parameters such as a charset.
func formOf(r *http.Request) string {
	form, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(form)
}

// presentation picks the first form of the answer that is known here; clients name the one that they like best first.
func presentation(r *http.Request) (partial bool, err error) {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	if accepted == "" {
		return false, nil
	}
	for clause := range strings.SplitSeq(accepted, ",") {
		form, parameters, err := mime.ParseMediaType(clause)
		if err != nil || form != plainJSON && form != "application/*" && form != "*/*" {
			continue
		}
		switch as := parameters["as"]; {
		case as == "":
			return false, nil
		case strings.HasPrefix(as, "PartialObjectMetadata") && parameters["g"] == metaGroup && parameters["v"] == "v1":
			return true, nil
		}
	}
	return false, unsupported("answers in the form %s", accepted)
}

const metaGroup = "meta.k8s.io"

// presented is an answer in the form that was asked for.
func (t target) presented(answer map[string]any) map[string]any {
	if !t.partial || answer["kind"] == "Status" && answer["apiVersion"] == "v1" {
		return answer
	}
	presented := map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": metaGroup + "/v1", "metadata": answer["metadata"],
	}
	if items, list := answer["items"].([]any); list {
		all := make([]any, 0, len(items))
		for _, item := range items {
			one, _ := item.(map[string]any)
			all = append(all, t.presented(one))
		}
		presented["kind"], presented["items"] = "PartialObjectMetadataList", all
	}
	return presented
}
