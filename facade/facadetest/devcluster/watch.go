package devcluster

import (
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// watchEvent is one event of a watch, with its object still encoded.
type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// translateWatch forwards events one by one, each in the format that the client expects.
func (h *handler) translateWatch(w http.ResponseWriter, from io.Reader, form responseFormat, request memapi.Request) {
	flush := http.NewResponseController(w)
	media := jsonContentType
	if form.contentType == protobufContentType {
		media = protobufContentType + ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(http.StatusOK)
	// Clients wait for the headers before they treat the watch as started.
	if flush.Flush() != nil {
		return
	}
	send := sendJSON(w)
	if form.contentType == protobufContentType {
		send = sendProtobuf(w)
	}
	headers := true
	for events := json.NewDecoder(from); ; {
		var event watchEvent
		if err := events.Decode(&event); err != nil {
			return // the watch has ended
		}
		// Error events are a Status, which is never shown as a table.
		if form.isTable && event.Type != "ERROR" {
			row, err := h.renderTable(event.Object, form, request.Resource, headers)
			if err != nil {
				h.log.Error(err, "Failed to print the object of a watch", "resource", request.Resource.Plural)
				return
			}
			event.Object, headers = row, false
		}
		// A failed write means that the client is gone.
		if err := send(event); err != nil {
			h.log.V(1).Info("A watch ended", "resource", request.Resource.Plural, "reason", err.Error())
			return
		}
		// Without a flush, an event would stay in the buffer until the next one.
		if flush.Flush() != nil {
			return
		}
	}
}

// sendJSON returns a function that writes events as JSON.
func sendJSON(w io.Writer) func(watchEvent) error {
	encoder := json.NewEncoder(w)
	return func(e watchEvent) error { return encoder.Encode(e) }
}

// sendProtobuf returns a function that writes events as protobuf in frames. The event does not have the prefix of
// Kubernetes' protobuf format, but the object inside it does.
func sendProtobuf(w io.Writer) func(watchEvent) error {
	encoder := streaming.NewEncoder(protobuf.LengthDelimitedFramer.NewFrameWriter(w), rawProtobufSerializer)
	return func(e watchEvent) error {
		object, err := responseFormat{contentType: protobufContentType}.fromJSON(e.Object)
		if err != nil {
			return err
		}
		return encoder.Encode(&metav1.WatchEvent{Type: e.Type, Object: runtime.RawExtension{Raw: object}})
	}
}
