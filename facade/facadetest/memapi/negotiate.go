package memapi

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxBodyBytes is the maximum length of a body, as in the real server.
const maxBodyBytes = 3 << 20

const plainJSON = "application/json"

// negotiateRequest checks the headers and the length of a request. It returns true for partial if the client accepts
// only the metadata of objects, and an error for features that this server does not have.
func negotiateRequest(r *http.Request, body []byte) (partial bool, err error) {
	// Impersonation is refused, because the server does not have users.
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return false, unsupportedError("impersonation (%s)", name)
		}
	}
	if len(body) > maxBodyBytes {
		return false, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBodyBytes))
	}
	form := contentTypeOf(r)
	// Patches have content types of their own, which are checked later.
	if len(body) > 0 && form != "" && form != plainJSON && r.Method != http.MethodPatch {
		return false, unsupportedError("bodies in the form %s", form)
	}
	return negotiateAnswer(r)
}

// contentTypeOf returns the content type of the body, without parameters such as a charset.
func contentTypeOf(r *http.Request) string {
	form, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(form)
}

// negotiateAnswer picks the first format of the answer that this server supports. Clients list the formats in the order
// of their preference.
func negotiateAnswer(r *http.Request) (partial bool, err error) {
	accepted := strings.Join(r.Header.Values("Accept"), ",")
	if accepted == "" {
		return false, nil
	}
	for clause := range strings.SplitSeq(accepted, ",") {
		// An unknown format is skipped, because clients that prefer protobuf or tables also accept JSON.
		form, parameters, err := mime.ParseMediaType(clause)
		if err != nil || form != plainJSON && form != "application/*" && form != "*/*" {
			continue
		}
		switch as := parameters["as"]; {
		// Complete objects as JSON.
		case as == "":
			return false, nil
		// Metadata only.
		case strings.HasPrefix(as, "PartialObjectMetadata") && parameters["g"] == metaGroup && parameters["v"] == "v1":
			return true, nil
		}
	}
	return false, unsupportedError("answers in the form %s", accepted)
}

const metaGroup = "meta.k8s.io"

// formatAnswer returns an answer in the format that the client accepts. Status objects are never reduced to their
// metadata.
func (t target) formatAnswer(answer map[string]any) map[string]any {
	if !t.isMetadataOnly || answer["kind"] == "Status" && answer["apiVersion"] == "v1" {
		return answer
	}
	presented := map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": metaGroup + "/v1", "metadata": answer["metadata"],
	}
	if items, list := answer["items"].([]any); list {
		all := make([]any, 0, len(items))
		for _, item := range items {
			one, _ := item.(map[string]any)
			all = append(all, t.formatAnswer(one))
		}
		presented["kind"], presented["items"] = "PartialObjectMetadataList", all
	}
	return presented
}
