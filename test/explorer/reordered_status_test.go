package explorer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// reorderedStatus is a planted fault: the operator's writes to the status take effect after its writes to the rest,
// without an error.
type reorderedStatus struct {
	next        http.RoundTripper
	mu          sync.Mutex
	heldRequest *http.Request
	body        []byte
}

func (s *reorderedStatus) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodPatch:
		return s.next.RoundTrip(r)
	case strings.HasSuffix(r.URL.Path, "/status"):
		return s.hold(r)
	}
	response, err := s.next.RoundTrip(r)
	if err == nil {
		time.Sleep(time.Millisecond)
		s.release()
	}
	return response, err
}

// hold puts the request aside, and answers as the API server would.
func (s *reorderedStatus) hold(r *http.Request) (*http.Response, error) {
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	get.URL.Path, get.URL.RawQuery = strings.TrimSuffix(r.URL.Path, "/status"), ""
	response, err := s.next.RoundTrip(get)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	object, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heldRequest, s.body = r.Clone(context.WithoutCancel(r.Context())), withoutVersion(patch)
	time.AfterFunc(100*time.Millisecond, s.release)
	answered, err := jsonpatch.MergePatch(object, s.body)
	if err != nil {
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(answered)), int64(len(answered))
	response.Header.Del("Content-Length")
	return response, nil
}

func (s *reorderedStatus) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heldRequest == nil {
		return
	}
	s.heldRequest.Body, s.heldRequest.ContentLength = io.NopCloser(bytes.NewReader(s.body)), int64(len(s.body))
	if response, err := s.next.RoundTrip(s.heldRequest); err == nil {
		_ = response.Body.Close()
	}
	s.heldRequest = nil
}

// withoutVersion returns the patch without its resource version.
func withoutVersion(patch []byte) []byte {
	var tree map[string]any
	if json.Unmarshal(patch, &tree) != nil {
		return patch
	}
	delete(tree, "metadata")
	data, err := json.Marshal(tree)
	if err != nil {
		return patch
	}
	return data
}
