package explorer

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
)

// Scenario describes the objects, the operator, and the systems outside of the cluster. Operator and Play are required.
// A scenario is created for each course, inside the synctest bubble of the course, so that fakes of outside systems
// start empty and use virtual time.
type Scenario struct {
	// Operator creates the operator like the main function of its program. It is called for each life, which stands for
	// one process. Objects that it creates end with the life, while fakes of outside systems continue.
	Operator func(life *Life) *kopf.Operator
	// Play creates, edits and deletes objects like the users of the cluster. When it returns, the explorer waits until
	// the scenario is idle, and inspects the objects.
	Play func(p *Play)
	// Server creates the API server with the definitions of all kinds, and with the objects that exist before the
	// operator starts. Garbage is collected at once. Default: memapi.New.
	Server func(t testing.TB) *memapi.Server
	// Outside returns the state of the outside systems, such as the volumes of a fake cloud, as a value for
	// encoding/json. It must be the same at the end of all courses, and equal to its initial state after all objects
	// were deleted. Default: no state.
	Outside func() any
	// Through wraps the transport of the operator's requests, for instance to add a slow network. It is called for each
	// life. Default: none.
	Through func(next http.RoundTripper) http.RoundTripper
	// Foreign changes an object like another client, just before a write of the operator arrives. The results of such a
	// course are not compared with the uncut run. Default: an annotation that does not call handlers and must remain on
	// the object.
	Foreign func(object *unstructured.Unstructured)
	// Scheme contains the types of the objects in [Play]. Default: those of client-go.
	Scheme *runtime.Scheme
}

// fillDefaults checks the required fields and sets the defaults.
func (s *Scenario) fillDefaults(t testing.TB) {
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
