package posting

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// These values are in all events of Kopf by default. Users may select events by them, so they must not change.
const (
	DefaultNamePrefix = "kopf-event-"
	DefaultInstance   = "dev"
	action            = "Action?"
)

// newEvent builds the event to post. It returns nil for an event about an event, which could otherwise cause an endless
// chain.
func (o *Options) newEvent(about *unstructured.Unstructured, eventType, reason, message string) *corev1.Event {
	if about.GetAPIVersion() == "v1" && about.GetKind() == "Event" {
		return nil
	}
	now := time.Now()
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), GenerateName: o.NamePrefix},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(),
			Name: about.GetName(), UID: about.GetUID(),
		},
		Type: eventType, Reason: reason, Message: shortenMessage(message), Action: action,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), EventTime: metav1.NewMicroTime(now),
		Source:              corev1.EventSource{Component: o.Component},
		ReportingController: o.Component, ReportingInstance: o.Instance,
	}
}

// shortenMessage removes the middle of a message that exceeds the API's limit of 1024 characters. The beginning says what
// happened, and the end often says why. The lengths are the same as in Kopf, in code points.
func shortenMessage(message string) string {
	const limit, head, tail = 1024, 511, 510
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	return string(runes[:head]) + "..." + string(runes[len(runes)-tail:])
}
