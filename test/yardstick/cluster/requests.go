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

// Requests are numbers of requests, by what they ask for: "patch kopfexamples", "get" without a resource for
// discovery. They count when they arrive, a watch too, and whatever their answer is.
type Requests map[string]int

// writing are the verbs that change something.
var writing = []string{"create", "update", "patch", "delete", "deletecollection"}

// Writes is the number of those that change something.
func (r Requests) Writes() int {
	writes := 0
	for what, count := range r {
		verb, _, _ := strings.Cut(what, " ")
		if slices.Contains(writing, verb) {
			writes += count
		}
	}
	return writes
}

// Total is the number of all of them.
func (r Requests) Total() int {
	total := 0
	for _, count := range r {
		total += count
	}
	return total
}

// Describe tells them in words, for so many objects: "patch kopfexamples 2.00 per object, list kopfexamples 1".
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

// Requests are those of a user that have arrived since the last call for any user.
//
// A request of the marker's own tells that the log has come as far as now.
func (c *Cluster) Requests(ctx context.Context, user string) (Requests, error) {
	name := fmt.Sprintf("marker-%d", time.Now().UnixNano())
	err := c.marker.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("asking for a mark in the audit log: %w", err)
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is a namespace %s, which cannot be", name)
	}
	found := Requests{}
	for {
		events, err := c.log.more()
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

// auditLog is read from where it was read to.
type auditLog struct {
	path string
	file *os.File
	rest []byte // of a line that is being written
}

// event is what matters here of an audit event.
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

// more are the events that were logged since the last call.
func (l *auditLog) more() ([]event, error) {
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
		l.rest = append(l.rest, line...)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var one event
		if err := json.Unmarshal(l.rest, &one); err != nil {
			return nil, fmt.Errorf("reading an audit event: %w", err)
		}
		events, l.rest = append(events, one), nil
	}
}

// pause waits, or tells why not any longer.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
