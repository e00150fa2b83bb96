package peering

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// eventInterval is the least time between two events about one object. Peers can change their records often, and each
// event is a write.
const eventInterval = time.Minute

// replaceNotice puts a notice into the channel, and discards an older one that was not posted yet: only the latest
// state is worth an event.
func replaceNotice(notices chan []string, peers []string) {
	select {
	case <-notices:
	default:
	}
	// This does not block, because the membership is the only sender, and the channel has room for one notice.
	notices <- peers
}

// postEvents creates an event on the peering object for each pause and each resumption, until the context ends. Events
// are a service to users: a failure is logged and the event is lost.
func (a *Attendance) postEvents(ctx context.Context, at place, notices <-chan []string) {
	for {
		select {
		case <-ctx.Done():
			return
		case peers := <-notices:
			if err := a.postPauseEvent(ctx, at, peers); err != nil && ctx.Err() == nil {
				logf.FromContext(ctx).V(1).Info("Cannot post an event on the peering object",
					"peering", a.member.Name, "reason", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(eventInterval):
		}
	}
}

// postPauseEvent creates an event that the operator pauses for these peers, or that it resumes if the list is empty.
func (a *Attendance) postPauseEvent(ctx context.Context, at place, peers []string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// kubectl shows events of an object by its uid, which the membership does not store.
	objects := a.newObjectList(at)
	if err := a.client.List(ctx, objects, a.ownObjectOptions(at, metav1.ListOptions{})...); err != nil {
		return fmt.Errorf("listing the peering object: %w", err)
	}
	if len(objects.Items) == 0 {
		// The object is gone, so an event cannot refer to it.
		return nil
	}
	reason, message := "Resumed", "Operator "+a.member.Self.Identity+" resumes operations"
	if len(peers) > 0 {
		reason = "Paused"
		message = "Operator " + a.member.Self.Identity + " pauses in favour of " + strings.Join(peers, ", ")
	}
	if at.namespace != "" {
		message += " in namespace " + at.namespace
	}
	now := metav1.Now()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			// Events about cluster-scoped objects belong to the default namespace.
			GenerateName: a.member.Name + "-", Namespace: cmp.Or(at.namespace, metav1.NamespaceDefault),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: at.kind.GroupVersion().String(), Kind: at.kind.Kind, Namespace: at.namespace,
			Name: a.member.Name, UID: objects.Items[0].GetUID(),
		},
		Reason: reason, Message: message[:min(len(message), maxMessageLength)], Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: Runtime}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil {
		return fmt.Errorf("encoding the event: %w", err)
	}
	event := &unstructured.Unstructured{Object: content}
	event.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	if err := a.client.Create(ctx, event); err != nil {
		return fmt.Errorf("posting the event: %w", err)
	}
	return nil
}

// maxMessageLength is how long the message of an event may be, in bytes. It is the limit of the API events.k8s.io/v1.
const maxMessageLength = 1024
