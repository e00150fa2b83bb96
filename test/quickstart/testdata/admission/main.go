// Command admission has the admission handler of the page about all settings of admission.
package main

import (
	"context"
	"net"
	"strconv"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// address has the port of the page, which the test replaces.
const address = "localhost:9443"

func main() {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	op := kopf.New("databases.example.org", kopf.Settings{Admission: kopf.AdmissionSettings{
		Managed: "databases.example.org", URL: "https://" + address, Port: port, SelfSigned: true, DumpCA: "/tmp/ca.crt",
	}})
	websites := kopf.ForResource(op, "websites.websites.example.org")
	websites.Validate("size", func(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
		if len(kopf.GetFieldOr(a.Object, "spec.title", "")) > 100 {
			return kopf.Deny(403, "the title is too large")
		}
		return nil
	})
	kopf.Main(op)
}
