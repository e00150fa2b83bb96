// Command admission has the admission handler of the pages about certificates and about all settings of admission. The
// variable SERVICE, if it is set, is the Service of the operator.
package main

import (
	"context"
	"net"
	"os"
	"strconv"

	kopf "github.com/kopf-runtime/kopf-runtime/facade"
)

// address has the port of the page, which the test replaces.
const address = "localhost:9443"

func main() {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	settings := kopf.AdmissionSettings{
		Managed: "databases.example.org", URL: "https://" + address, Port: port, SelfSigned: true, DumpCA: "/tmp/ca.crt",
	}
	if service := os.Getenv("SERVICE"); service != "" {
		settings = kopf.AdmissionSettings{Managed: settings.Managed, Service: service, Port: port}
	}
	op := kopf.New("databases.example.org", kopf.Settings{Admission: settings})
	websites := kopf.ForResource(op, "websites.websites.example.org")
	websites.Validate("size", func(_ context.Context, a *kopf.Admission[*kopf.Unstructured]) error {
		if len(kopf.GetFieldOr(a.Object, "spec.title", "")) > 100 {
			return kopf.Deny(403, "the title is too large")
		}
		return nil
	})
	kopf.Main(op)
}
