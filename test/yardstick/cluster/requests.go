package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests counts requests by verb and resource: "patch kopfexamples", "get" without a resource for discovery. Every
// request counts when it arrives, including watches, whatever its response.
type Requests map[string]int

// writeVerbs lists the verbs that change objects.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes returns the number of requests that change objects. The API server answers reviews, and stores none.
func (r Requests) Writes() int {
	writes := 0
	for what, count := range r {
		verb, resource, _ := strings.Cut(what, " ")
		if slices.Contains(writeVerbs, verb) && !strings.HasSuffix(resource, "reviews") {
			writes += count
		}
	}
	return writes
}

// Total returns the number of all requests.
func (r Requests) Total() int {
	total := 0
	for _, count := range r {
		total += count
	}
	return total
}

// Describe formats the counts for a number of objects: "patch kopfexamples 2.00 per object, list kopfexamples 1".
func (r Requests) Describe(objects int) string {
	var words []string
	for _, what := range slices.Sorted(maps.Keys(r)) {
		if r[what]*10 >= objects {
			words = append(words, fmt.Sprintf("%s %.2f per object", what, float64(r[what])/float64(objects)))
		} else {
			words = append(words, fmt.Sprintf("%s %d", what, r[what]))
		}
	}
	return strings.Join(words, ", ")
}

// Requests returns the requests of a user that have arrived since the last call for any user.
//
// A request by the marker shows that the audit log is complete up to the call.
func (c *Cluster) Requests(ctx context.Context, user string) (Requests, error) {
	name := fmt.Sprintf("marker-%d", time.Now().UnixNano())
	err := c.markerClient.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("asking for a mark in the audit log: %w", err)
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is a namespace %s, which cannot be", name)
	}
	found := Requests{}
	for {
		events, err := c.log.newEvents()
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.User.Username == user {
				found[e.what()]++
			}
			if e.ObjectRef.Name == name {
				return found, nil
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, fmt.Errorf("waiting for the audit log: %w", err)
		}
	}
}

// auditLog reads the audit log incrementally.
type auditLog struct {
	path        string
	file        *os.File
	partialLine []byte // the start of an incomplete line
}

// event contains the used fields of an audit event.
type event struct {
	Verb      string                                       `json:"verb"`
	User      struct{ Username string }                    `json:"user"`
	ObjectRef struct{ Resource, Subresource, Name string } `json:"objectRef"`
}

func (e event) what() string {
	what := e.Verb
	if e.ObjectRef.Resource != "" {
		what += " " + e.ObjectRef.Resource
	}
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}
	return what
}

// newEvents returns the events that were logged since the last call.
func (l *auditLog) newEvents() ([]event, error) {
	if l.file == nil {
		file, err := os.Open(l.path)
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		l.file = file // it ends with the process
	}
	var events []event
	for lines := bufio.NewReader(l.file); ; {
		line, err := lines.ReadBytes('\n')
		l.partialLine = append(l.partialLine, line...)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var one event
		if err := json.Unmarshal(l.partialLine, &one); err != nil {
			return nil, fmt.Errorf("reading an audit event: %w", err)
		}
		events, l.partialLine = append(events, one), nil
	}
}

// pause waits, or returns the cause of a cancelled context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
