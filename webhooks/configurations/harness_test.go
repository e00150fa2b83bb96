package configurations_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/configurations"
)

var (
	validatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		Plural: "validatingwebhookconfigurations", Plain: true,
	}
	mutatingResource = memapi.Resource{
		Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration",
		Plural: "mutatingwebhookconfigurations", Plain: true,
	}
)

// cluster returns an API server with webhook configurations.
func cluster() *memapi.Server {
	server := memapi.New()
	server.Install(validatingResource)
	server.Install(mutatingResource)
	return server
}

// process is one process of an operator, with its own connection.
type process struct {
	*configurations.Writer
	connection *memapi.Connection
	cancel     context.CancelFunc
	runResult  chan error
}

// options returns the options of an operator whose process has this name and started at this second.
func options(name string, second int64) configurations.Options {
	return configurations.Options{
		Name: "shared", Operator: "ops.example.org", Form: ownForm, Identity: name, StartTime: time.Unix(second, 0),
		HandOver: time.Second,
	}
}

// start runs a process in a bubble until it is stopped.
func start(
	t *testing.T, server *memapi.Server, o configurations.Options, hooks ...configurations.Hook,
) process {
	t.Helper()
	p := prepare(t, server, o)
	p.run(t, hooks...)
	return p
}

func prepare(t *testing.T, server *memapi.Server, o configurations.Options) process {
	t.Helper()
	connection := server.Connect()
	client, err := configurations.NewClient(memapi.Config(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Client = client
	return process{Writer: configurations.NewWriter(o), connection: connection, runResult: make(chan error, 1)}
}

func (p *process) run(t *testing.T, hooks ...configurations.Hook) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	p.cancel = end
	go func() { p.runResult <- p.Run(ctx) }()
	p.SetHooks(hooks)
	p.SetClientConfig(admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://here")})
	synctest.Wait()
}

// stop ends a process as a signal does, and waits for the end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.cancel()
	if err := <-p.runResult; err != nil {
		t.Errorf("the process ends with the error %v", err)
	}
	synctest.Wait()
}

// writes returns the number of successful writes since the last call.
func (p *process) writes() int {
	count := 0
	for _, request := range p.connection.DrainRequests() {
		if request.Code < 300 && request.Verb != "get" && request.Verb != "watch" {
			count++
		}
	}
	return count
}

// version returns the resource version of the validating object.
func version(t *testing.T, server *memapi.Server) string {
	t.Helper()
	return read(t, server.Object(validatingResource, "", "shared")).ResourceVersion
}

// names returns the names of the entries of an object; nil if there is no object.
func names(t *testing.T, server *memapi.Server, of memapi.Resource) []string {
	t.Helper()
	object := server.Object(of, "", "shared")
	if object == nil {
		return nil
	}
	all := []string{}
	for _, entry := range read(t, object).Webhooks {
		all = append(all, entry.Name)
	}
	return all
}

func read(t *testing.T, object map[string]any) admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var decoded admissionregistrationv1.ValidatingWebhookConfiguration
	if err := json.Unmarshal(data, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}
