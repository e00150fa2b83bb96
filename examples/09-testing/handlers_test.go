package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest"
)

// example returns an object as the cluster would have it.
func example(spec map[string]any) *kopf.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"namespace": "default", "name": "ann"}, "spec": spec,
	}}
}

// recordingPost is a post that stores the letters, or fails.
type recordingPost struct {
	mu      sync.Mutex
	letters []string
	err     error
}

func (b *recordingPost) send(_ context.Context, to, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.letters = append(b.letters, to+": "+text)
	return nil
}

// strike makes all calls fail with an error; nil makes them succeed again.
func (b *recordingPost) strike(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// at returns an office with a given index, and without letters sent so far.
func at(b *recordingPost, neighbours ...string) *office {
	return &office{
		post: b, byAddress: facadetest.NewIndex(map[string][]string{"High Street": neighbours}),
		lastLetters: facadetest.NewMemo[string](nil),
	}
}

// A handler is called as a function. The outcome has the changes of its object; the client has the changes of other
// objects.
func TestLetter(t *testing.T) {
	cluster, sent := fake.NewClientBuilder().Build(), &recordingPost{}
	c := facadetest.NewChange(
		example(map[string]any{"field": "High Street"}), facadetest.Client(cluster), facadetest.ID("letter"))
	got := c.Call(t.Context(), at(sent, "ann", "bob").letter)

	const text = "Dear ann, you are one of 2 here"
	if got.Err != nil || got.Result != text || !slices.Equal(sent.letters, []string{"High Street: " + text}) {
		t.Errorf("got %v, result %v, letters %q", got.Err, got.Result, sent.letters)
	}
	if len(got.Events) != 1 || got.Events[0].Reason != "Sent" || len(got.InPlace) != 0 {
		t.Errorf("got events %v, changed in place %v", got.Events, got.InPlace)
	}
	var kept corev1.ConfigMap
	err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "ann-letter"}, &kept)
	if err != nil || kept.Data["text"] != text {
		t.Errorf("got %v, %v", err, kept.Data)
	}
}

// Another call is the next attempt: the test does not wait for the delays.
func TestThePostFails(t *testing.T) {
	broken := &recordingPost{err: errors.New("the post is on strike")}
	c := facadetest.NewChange(
		example(map[string]any{"field": "High Street"}), facadetest.Client(fake.NewClientBuilder().Build()))
	for attempt := 1; attempt <= 5; attempt++ {
		got := c.Call(t.Context(), at(broken).letter, kopf.Retries(5))
		if !errors.Is(got.Err, broken.err) || got.Final != (attempt == 5) {
			t.Errorf("attempt %d: got %v, final %v", attempt, got.Err, got.Final)
		}
		if !got.Final && got.Delay != time.Hour {
			t.Errorf("attempt %d: the next one is in %s", attempt, got.Delay)
		}
	}
}

func TestWithoutAddress(t *testing.T) {
	sent := &recordingPost{}
	got := facadetest.NewChange(example(map[string]any{})).Call(t.Context(), at(sent).letter)
	if got.Err == nil || !strings.Contains(got.Err.Error(), "there is no address") || !got.Final {
		t.Errorf("nothing but a change of the object can help: got %v, final %v", got.Err, got.Final)
	}
}

// The test sets the memo of the object beforehand.
func TestTheSameLetter(t *testing.T) {
	ann, sent := example(map[string]any{"field": "High Street"}), &recordingPost{}
	text := "High Street" + "Dear ann, you are one of 1 here"
	o := at(sent, "ann")
	o.lastLetters = facadetest.NewMemo(map[client.Object]*string{ann: &text})
	got := facadetest.NewChange(ann, facadetest.Client(fake.NewClientBuilder().Build())).Call(t.Context(), o.letter)
	if got.Err != nil || len(sent.letters) > 0 || len(got.Events) > 0 {
		t.Errorf("got %v, letters %q, events %v", got.Err, sent.letters, got.Events)
	}
}

// A deletion is tested like any other change.
func TestFarewell(t *testing.T) {
	sent := &recordingPost{}
	c := facadetest.NewChange(
		example(map[string]any{"field": "High Street"}), facadetest.Reason(kopf.ReasonDelete))
	if got := c.Call(t.Context(), at(sent).farewell); got.Err != nil || len(sent.letters) != 1 {
		t.Errorf("got %v, letters %q", got.Err, sent.letters)
	}
}

// Each call is a tick of the timer, and gets the object as the previous call left it.
func TestReminder(t *testing.T) {
	r := facadetest.NewTask(example(map[string]any{}))
	for tick := 1; tick <= 3; tick++ {
		got := r.Call(t.Context(), at(&recordingPost{}).reminder)
		if reminders := kopf.GetFieldOr(got.Object, "status.reminders", 0); got.Err != nil || reminders != tick {
			t.Errorf("tick %d: got %v, %d reminders", tick, got.Err, reminders)
		}
	}
}
