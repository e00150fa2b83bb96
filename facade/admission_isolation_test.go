package kopf_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/webhooks/review"
)

// TestAdmissionHandlersGetCopies shows that changes which handlers and filters make to their arguments do not
// reach other handlers, the response or the request.
func TestAdmissionHandlersGetCopies(t *testing.T) {
	var notes [2][]string
	for i, active := range []bool{false, true} {
		v := &tamperingHandlers{isActive: active, op: kopf.New("test.example.org")}
		v.register()
		asked := update("uid-1")
		text, err := json.Marshal(map[string]any{"request": asked})
		if err != nil {
			t.Fatal(err)
		}
		in := review.EndpointRequest{
			Body: text, Headers: http.Header{"A": {"b"}}, PeerCertificates: []*x509.Certificate{certificate(t)},
		}
		out, err := reviewerOf(t, v.op).Review(t.Context(), in)
		if err != nil || !out.Response.Allowed {
			t.Fatalf("the request is allowed: got %+v, %v", out.Response, err)
		}
		v.note("the end", in.Headers, len(in.PeerCertificates), string(out.Response.Patch), out.Response.Warnings)
		notes[i] = v.notes
	}
	if len(notes[0]) != 7 {
		t.Fatalf("all handlers are called: got %v", notes[0])
	}
	if d := cmp.Diff(notes[0], notes[1]); d != "" {
		t.Errorf("-left alone, +tampered with:\n%s", d)
	}
}

// certificate returns a self-signed certificate.
func certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apiserver"}}
	raw, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tamperingHandlers records the arguments of its functions. If it is active, its functions also change every value that
// they can reach.
type tamperingHandlers struct {
	isActive bool
	op       *kopf.Operator
	notes    []string
}

func (v *tamperingHandlers) note(values ...any) {
	text, err := json.Marshal(values)
	v.notes = append(v.notes, fmt.Sprint(string(text), err))
}

func (v *tamperingHandlers) tamper(values ...any) {
	for _, value := range values {
		if v.isActive {
			tamperWith(reflect.ValueOf(value))
		}
	}
}

func (v *tamperingHandlers) register() {
	widgets := kopf.For(v.op, &Widget{}).When(func(_ context.Context, w *Widget) bool {
		fine := w.Spec.Owner == "ann"
		v.tamper(w)
		return fine
	})
	raws := kopf.ForResource(v.op, "widgets").When(func(_ context.Context, raw *kopf.Unstructured) bool {
		v.tamper(raw)
		return true
	})
	for _, id := range []string{"a", "b"} {
		widgets.Validate(id, func(_ context.Context, a *Admission) error {
			v.note(id, a.Object, a.Old, a.Diff(), a.UserInfo, a.Headers, a.PeerCertificates[0].Subject.String())
			resource := a.Resource()
			v.tamper(a.Latest(), &resource, a)
			return nil
		}, kopf.InField("spec.owner"), kopf.Value(func(value any, _ bool) bool { v.tamper(value); return true }))
		raws.Validate(id+"-raw", func(_ context.Context, a *RawAdmission) error {
			v.note(id, a.Object, a.Old, a.Diff(), a.UserInfo, a.Headers, nil)
			v.tamper(a)
			return nil
		})
		widgets.Mutate(id, func(_ context.Context, a *Admission) error {
			v.note(id, a.Object, a.Old, a.Diff(), a.UserInfo, a.Headers, nil)
			a.Object.Spec.Size++
			v.tamper(&a.Old, a.Diff(), &a.UserInfo, a.Headers, a.PeerCertificates)
			return nil
		})
	}
}
