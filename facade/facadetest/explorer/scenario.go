package explorer

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Scenario is what happens to some objects, who serves them, and what there is outside of the cluster. Operator and
// Play are required. It is made anew for each course, in the bubble of testing/synctest where it is played, so that
// fakes of outside systems begin empty, and have virtual time.
type Scenario struct {
	// Operator makes the operator, as the main function of its program does. It is called for each life, that is for
	// each process: what it makes ends with that, while the fakes of outside systems go on.
	Operator func(life *Life) *kopf.Operator
	// Play is what people do: they create objects, edit and delete them. When it returns, all is brought to rest, and
	// looked at.
	Play func(p *Play)
	// Server makes the API server, with the definitions of all kinds, and with the objects that are there before the
	// operator. Garbage is collected at once. Default: memapi.New.
	Server func(t testing.TB) *memapi.Server
	// Outside gives the state of what is outside of the cluster, such as the volumes of a fake cloud: whatever
	// encoding/json can encode. It has to become the same on all courses, and to be as at the beginning when all
	// objects are deleted. Default: there is nothing.
	Outside func() any
	// Through is what is on the way of the operator's requests to the API server, such as a slow network. It is called
	// for each life. Default: nothing.
	Through func(next http.RoundTripper) http.RoundTripper
	// Foreign is what somebody else changes of an object just before a write of the operator arrives. What comes of
	// that is not compared with the uncut run. Default: an annotation for which no handler is called, and which must
	// still be there in the end.
	Foreign func(object *unstructured.Unstructured)
	// Scheme has the types of the objects in [Play]. Default: those of client-go.
	Scheme *runtime.Scheme
}

func (s *Scenario) fill(t testing.TB) {
	if s.Operator == nil || s.Play == nil {
		t.Fatal("explorer: a Scenario needs an Operator and a Play: set both")
	}
	if s.Server == nil {
		s.Server = func(testing.TB) *memapi.Server { return memapi.New() }
	}
	if s.Through == nil {
		s.Through = func(next http.RoundTripper) http.RoundTripper { return next }
	}
	if s.Outside == nil {
		s.Outside = func() any { return nil }
	}
}
