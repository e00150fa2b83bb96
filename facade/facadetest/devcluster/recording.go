package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// recorder writes requests to a file in the format of audit logs: a line of JSON per request. Nil records nothing.
type recorder struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

// newRecorder opens the file of a recording, and empties it. Without a path, it returns nil.
func newRecorder(path string) (*recorder, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the recording: %w", err)
	}
	return &recorder{file: file}, nil
}

// recordRequest writes one request for objects. A watch is recorded when it begins, so that the file has it also after
// a kill.
func (r *recorder) recordRequest(request memapi.Request, user, agent string) {
	if request.Resource.Plural == "" {
		return
	}
	// As in the real server, a list of one object has its name.
	if by, err := fields.ParseSelector(request.Query.Get("fieldSelector")); request.Name == "" && err == nil {
		request.Name, _ = by.RequiresExactMatch("metadata.name")
	}
	now := metav1.NewMicroTime(time.Now())
	data, err := json.Marshal(auditv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Event"},
		Level:    auditv1.LevelMetadata, AuditID: uuid.NewUUID(), Stage: auditv1.StageRequestReceived,
		RequestURI: request.Path, Verb: request.Verb, User: authenticationv1.UserInfo{Username: user}, UserAgent: agent,
		ObjectRef: &auditv1.ObjectReference{
			APIGroup: request.Resource.Group, APIVersion: request.Resource.Version, Resource: request.Resource.Plural,
			Subresource: request.Subresource, Namespace: request.Namespace, Name: request.Name,
		},
		RequestReceivedTimestamp: now, StageTimestamp: now,
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	// A recording that has a gap must be reported, but later requests are still worth recording.
	if err == nil {
		_, err = r.file.Write(append(data, '\n'))
	}
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("recording a request: %w", err)
	}
}

// close closes the file, and returns the first error of all writes.
func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.file.Close())
}
