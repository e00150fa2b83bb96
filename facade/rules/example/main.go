// Command example has a condition on objects that is written once: as the operator, it enforces it, and with the
// argument "policy" it prints it for API servers that no operator runs beside.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
	"github.com/kopf-runtime/kopf-runtime/facade/rules"
)

// Database is the kind that the condition is about.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size int32 `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject copies it.
func (d *Database) DeepCopyObject() runtime.Object {
	return &Database{TypeMeta: d.TypeMeta, ObjectMeta: *d.ObjectMeta.DeepCopy(), Spec: d.Spec}
}

const name = "databases.rules.kopf.dev"

var grows = rules.New(
	"size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size", "the size never shrinks",
	rules.Reason(metav1.StatusReasonForbidden),
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == "policy" {
		return printPolicy(os.Stdout)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("finding a port for the webhook server: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:errcheck // it is one
	if err := listener.Close(); err != nil {
		return err
	}
	op := kopf.New(name, kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addToScheme},
		Admission: kopf.AdmissionSettings{
			Managed: name, URL: fmt.Sprintf("https://127.0.0.1:%d", port), Port: port, SelfSigned: true,
		},
	})
	rules.Add(kopf.For(op, &Database{}), grows)
	kopf.Main(op)
	return nil
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(schema.GroupVersion{Group: "rules.kopf.dev", Version: "v1"}, &Database{})
	return nil
}

// printPolicy is for kubectl apply.
func printPolicy(to io.Writer) error {
	policy, binding, err := rules.Policy(name, []admissionregistrationv1.Rule{{
		APIGroups: []string{"rules.kopf.dev"}, APIVersions: []string{"v1"}, Resources: []string{"databases"},
	}}, grows)
	if err != nil {
		return err
	}
	for _, object := range []any{policy, binding} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encoding the policy: %w", err)
		}
		if _, err := fmt.Fprintf(to, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
