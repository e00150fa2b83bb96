package posting

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// These values are the same in all events of Kopf, unless its settings have others; users may select events by them.
const (
	DefaultNamePrefix = "kopf-event-"
	DefaultInstance   = "dev"
	action            = "Action?"
)

// event is what is posted; nil about an event.
func (o *Options) event(about *unstructured.Unstructured, eventType, reason, message string) *corev1.Event {
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
		Type: eventType, Reason: reason, Message: shorten(message), Action: action,
		FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), EventTime: metav1.NewMicroTime(now),
		Source:              corev1.EventSource{Component: o.Component},
		ReportingController: o.Component, ReportingInstance: o.Instance,
	}
}

// shorten cuts the middle out of a message that is longer than the API takes: the beginning says what happened, the
// end often why. Lengths are in code points.
func shorten(message string) string {
	const limit, head, tail = 1024, 511, 510
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	return string(runes[:head]) + "..." + string(runes[len(runes)-tail:])
}
