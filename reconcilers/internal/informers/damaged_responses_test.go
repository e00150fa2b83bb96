package informers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kopf-runtime/kopf-runtime/internal/compact"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
	"github.com/kopf-runtime/kopf-runtime/internal/transport"
	"github.com/kopf-runtime/kopf-runtime/reconcilers/internal/informers"
)

const (
	emptyList = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`
	anEvent   = `{"type":"ADDED","object":{"metadata":{"name":"seen","resourceVersion":"8"}}}` + "\n"
	halfList  = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"na`
)

// answer is a response of a server. Its connection stays open unless it is cut.
type answer struct {
	head             []byte
	repeated         string // repeated every second without end; empty sends nothing more
	closesConnection bool
	gzip             bool
	mediaType        string // the media type; empty means JSON
}

// damagedServer is an API server whose first list or first watch is damaged. All later responses are correct.
type damagedServer struct {
	list, watch    *answer // nil means a correct one
	lists, watches int
}

func (s *damagedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") != "":
		return respond(r, http.StatusUnprocessableEntity, answer{closesConnection: true, head: []byte(
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)})
	case query.Get("watch") != "":
		if s.watches++; s.watches == 1 && s.watch != nil {
			return respond(r, http.StatusOK, *s.watch)
		}
		return respond(r, http.StatusOK, answer{head: []byte(anEvent)})
	default:
		if s.lists++; s.lists == 1 && s.list != nil {
			return respond(r, http.StatusOK, *s.list)
		}
		return respond(r, http.StatusOK, answer{head: []byte(emptyList), closesConnection: true})
	}
}

// Without this, the reporting of errors waits by the real clock, from the start of the process.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// respond sends an answer until the request ends.
func respond(r *http.Request, code int, a answer) (*http.Response, error) {
	in, out := io.Pipe()
	ctx := r.Context()
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })
	go func() {
		_, err := out.Write(a.head)
		for a.repeated != "" && err == nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			_, err = io.WriteString(out, a.repeated)
		}
		if a.closesConnection {
			_ = out.Close()
		}
	}()
	response := &http.Response{StatusCode: code, Header: http.Header{}, Body: in}
	response.Header.Set("Content-Type", "application/json")
	if a.mediaType != "" {
		response.Header.Set("Content-Type", a.mediaType)
	}
	if a.gzip { // as the transport of net/http does
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		response.Body = struct {
			io.Reader
			io.Closer
		}{unpacked, in}
	}
	return response, nil
}

func truncatedGzip(text string) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(text))
	_ = w.Flush()
	return packed.Bytes() // without the end of the stream
}

// TestDamagedAnswersAreRequestedAgain shows that a damaged response ends at once, or after the inactivity timeout if
// more bytes could complete it. The informer then lists or watches again, so the kind is never left unwatched.
func TestDamagedAnswersAreRequestedAgain(t *testing.T) {
	const seconds = 5 // what the backoff of a reflector may take
	limit := transport.DefaultInactivityTimeout
	hugeFrame := binary.BigEndian.AppendUint32(nil, 10<<20)
	tests := map[string]struct {
		reason string
		server damagedServer
		within time.Duration
	}{
		"GarbageAfterHalfAnEvent": {"an event that cannot be completed ends the watch at once", damagedServer{
			watch: &answer{head: []byte(anEvent[:20] + anEvent), repeated: anEvent},
		}, seconds * time.Second},
		"GarbageInAString": {"a line break within a string ends the watch at once", damagedServer{
			watch: &answer{head: []byte(anEvent[:44] + "\n"), repeated: anEvent},
		}, seconds * time.Second},
		"BinaryGarbage": {"bytes that cannot begin an event end the watch at once", damagedServer{
			watch: &answer{head: []byte{0, 0xff, '{'}, repeated: anEvent},
		}, seconds * time.Second},
		"EndlessEvent": {"bytes that never complete an event do not keep the watch alive", damagedServer{
			watch: &answer{head: []byte(anEvent[:44]), repeated: "x"},
		}, limit + seconds*time.Second},
		"SilentAfterHalfAnEvent": {"silence within an event ends the watch after the inactivity timeout", damagedServer{
			watch: &answer{head: []byte(anEvent[:44])},
		}, limit + seconds*time.Second},
		"ProtobufLength": {"a damaged length does not hide the events after it", damagedServer{
			watch: &answer{head: hugeFrame, repeated: strings.Repeat("x", 100), mediaType: runtime.ContentTypeProtobuf +
				";stream=watch"},
		}, limit + seconds*time.Second},
		"CompressedWatch": {"a compressed watch that is cut in the middle ends", damagedServer{
			watch: &answer{head: truncatedGzip(anEvent[:44]), gzip: true, closesConnection: true},
		}, seconds * time.Second},
		"HalfAList": {"half a list is requested again", damagedServer{
			list: &answer{head: []byte(halfList), closesConnection: true},
		}, seconds * time.Second},
		"GarbageInAList": {"a list with garbage in the middle is requested again", damagedServer{
			list: &answer{head: []byte(halfList + emptyList), closesConnection: true},
		}, seconds * time.Second},
		"CompressedList": {"a compressed list that is cut in the middle is requested again", damagedServer{
			list: &answer{head: truncatedGzip(emptyList), gzip: true, closesConnection: true},
		}, seconds * time.Second},
		"EndlessList": {"a list that never ends is requested again", damagedServer{
			list: &answer{head: []byte(halfList), repeated: "x"},
		}, transport.DefaultRequestTimeout + seconds*time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took := timeUntilObject(t, &tc.server); took > tc.within {
					t.Errorf("%s: seen after %s, want %s", tc.reason, took, tc.within)
				}
			})
		})
	}
}

// timeUntilObject runs an informer until it receives an object, and returns the duration.
func timeUntilObject(t *testing.T, server http.RoundTripper) time.Duration {
	t.Helper()
	began := time.Now()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	informer, err := informers.New(
		&rest.Config{Host: "http://api"},
		&http.Client{Transport: transport.RequestLimits{}.WrapRoundTrip(server.RoundTrip)},
		discovery.Resource{GroupVersionKind: kind, Plural: "configmaps"},
		informers.WatchInterest{Kind: compact.KindOf(clientgoscheme.Scheme, kind)},
	)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{}, 10)
	if _, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { seen <- struct{}{} },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	select {
	case <-seen:
	case <-time.After(time.Hour):
		t.Error("the informer received nothing for an hour")
	}
	return time.Since(began)
}
