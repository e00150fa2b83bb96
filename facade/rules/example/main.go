// Command example enforces a condition that is written once. As the operator, it enforces the condition in an admission
// handler. With the argument "policy", it prints a policy, with which API servers enforce it without an operator.
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

// Database is the kind to which the condition applies.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Size int32 `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject returns a copy. Spec has no pointers, so its assignment is sufficient.
func (d *Database) DeepCopyObject() runtime.Object {
	return &Database{TypeMeta: d.TypeMeta, ObjectMeta: *d.ObjectMeta.DeepCopy(), Spec: d.Spec}
}

// operatorName is the name of the operator, of its webhook configurations, and of the policy.
const operatorName = "databases.rules.kopf.dev"

// growthRule allows the creation of databases, and all updates that do not reduce the size.
var growthRule = rules.New(
	"size-grows", "oldObject == null || object.spec.size >= oldObject.spec.size", "the size never shrinks",
	rules.Reason(metav1.StatusReasonForbidden),
)

func main() {
	if err := runCommand(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runCommand prints the policy or runs the operator.
func runCommand() error {
	if len(os.Args) == 2 && os.Args[1] == "policy" {
		return printPolicy(os.Stdout)
	}
	// The webhook server needs a free port before the operator starts, because the URL is part of the settings.
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("finding a port for the webhook server: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:errcheck // it is one
	// The port is free again for the server. Another process could take it in between, which is acceptable for an
	// example.
	if err := listener.Close(); err != nil {
		return err
	}
	op := kopf.New(operatorName, kopf.Settings{
		AddToScheme: runtime.SchemeBuilder{addToScheme},
		Admission: kopf.AdmissionSettings{
			Managed: operatorName, URL: fmt.Sprintf("https://127.0.0.1:%d", port), Port: port, SelfSigned: true,
		},
	})
	rules.Add(kopf.For(op, &Database{}), growthRule)
	kopf.Main(op)
	return nil
}

// addToScheme registers the kind, without generated code.
func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(schema.GroupVersion{Group: "rules.kopf.dev", Version: "v1"}, &Database{})
	return nil
}

// printPolicy writes the policy and its binding as YAML for kubectl apply.
func printPolicy(to io.Writer) error {
	policy, binding, err := rules.Policy(operatorName, []admissionregistrationv1.Rule{{
		APIGroups: []string{"rules.kopf.dev"}, APIVersions: []string{"v1"}, Resources: []string{"databases"},
	}}, growthRule)
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
