package admission_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/internal/namespaces"
	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
)

func TestOneIDForTwoKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(widgets, gadgets)
		r := start(t, options(server, newRegistration(widgets, "quota", "no widgets"),
			newRegistration(gadgets, "quota", "no gadgets"),
			newRegistration(gadgets, "name", "")))
		for path, want := range map[string]string{
			"/ops/validate/widget.v1.example.org/quota": "no widgets",
			"/ops/validate/gadget.v1.example.org/quota": "no gadgets",
		} {
			resource := widgets
			if strings.Contains(path, "gadget") {
				resource = gadgets
			}
			if status, denied := r.ask(t, path, resource); status != http.StatusOK || denied != want {
				t.Errorf("%s: got %d %q, want %q", path, status, denied, want)
			}
		}
		if status, denied := r.ask(t, "/ops/validate/name", gadgets); status != http.StatusOK || denied != "" {
			t.Errorf("an id that only one kind has must not need the kind in its path: got %d %q", status, denied)
		}
		if status, _ := r.ask(t, "/ops/validate/quota", gadgets); status != http.StatusNotFound {
			t.Errorf("the path of a shared id without a kind must not be served: got %d", status)
		}
		all := entries(t, server, validatingResource)
		entry := all["widget.v1.example.org.quota.ops.example.org"]
		url := entry.ClientConfig.URL
		if url == nil || *url != "https://here/ops/validate/widget.v1.example.org/quota" {
			t.Errorf("the entry must have the path with the kind: got %+v", all)
		}
		if len(entry.Rules) != 1 || entry.Rules[0].Resources[0] != "widgets" {
			t.Errorf("the entry must have the rule of its own kind: got %+v", entry.Rules)
		}
		r.stop(t)
		if all := entries(t, server, validatingResource); len(all) != 0 {
			t.Errorf("all entries must be removed: got %v", all)
		}
	})
}

// TestOneFunctionForObjectsAndNamespaces shows that the namespace selector of one selection does not apply to
// Namespaces of another one.
func TestOneFunctionForObjectsAndNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := memapi.Resource{Version: "v1", Kind: "Namespace", Plural: "namespaces"}
		server := cluster(widgets, places)
		one, other := newRegistration(widgets, "v", "no"), newRegistration(places, "v", "no")
		one.Handler.FunctionKey, other.Handler.FunctionKey = 7, 7
		o := options(server, one, other)
		o.ReviewedNamespaces = func() namespaces.NamespaceRule {
			return namespaces.NamespaceRule{Served: namespaces.Patterns{namespaces.ParsePattern("team-a")}}
		}
		r := start(t, o)
		entry := entries(t, server, validatingResource)["v.ops.example.org"]
		if len(entry.Rules) != 2 || entry.NamespaceSelector != nil {
			t.Errorf("Namespaces must be sent: got %+v with the selector %v", entry.Rules, entry.NamespaceSelector)
		}
		r.stop(t)
	})
}

// TestOneFunctionForTwoSelections shows that one function with the same id in several selections has one endpoint and
// one entry.
func TestOneFunctionForTwoSelections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(widgets, gadgets)
		same := func(r memapi.Resource, operations ...string) admission.RegisteredHandler {
			one := newRegistration(r, "quota", "no")
			one.Handler.FunctionKey, one.Handler.Operations = "quota", operations
			return one
		}
		again := same(widgets, "CREATE")
		again.Handler.Labels = labels.SelectorFromSet(labels.Set{"tier": "prod"})
		r := start(t, options(server, same(widgets, "CREATE"), again, same(gadgets),
			newRegistration(widgets, "other", "")))
		for _, resource := range []memapi.Resource{widgets, gadgets} {
			if status, denied := r.ask(t, "/ops/validate/quota", resource); status != http.StatusOK || denied != "no" {
				t.Errorf("%s: got %d %q", resource.Plural, status, denied)
			}
		}
		all := entries(t, server, validatingResource)
		entry := all["quota.ops.example.org"]
		if len(all) != 2 || len(entry.Rules) != 2 || entry.ObjectSelector != nil {
			t.Fatalf("want one entry with the rules of all selections, without the filter of one of them: got %+v", all)
		}
		for i, want := range []string{"[CREATE] [widgets]", "[*] [gadgets]"} {
			if got := fmt.Sprint(entry.Rules[i].Operations, " ", entry.Rules[i].Resources); got != want {
				t.Errorf("rule %d: got %s, want %s", i, got, want)
			}
		}
		r.stop(t)
	})
}

func TestResourcesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(gadgets)
		registration := newRegistration(widgets, "quota", "no")
		registration.Handler.Labels = labels.SelectorFromSet(labels.Set{"a": "b"})
		r := start(t, options(server, registration))
		defer r.stop(t)
		if status, _ := r.ask(t, "/ops/validate/quota", widgets); status != http.StatusNotFound {
			t.Errorf("an unknown resource must not be served: got %d", status)
		}
		entry := entries(t, server, validatingResource)["quota.ops.example.org"]
		if len(entry.Rules) != 0 || entry.ObjectSelector == nil {
			t.Errorf("an entry without a resource must have its filter and no rules: got %+v", entry)
		}
		server.Put(definitionResource, definition())
		time.Sleep(30 * time.Second)
		if rules := entries(t, server, validatingResource)["quota.ops.example.org"].Rules; len(rules) != 1 {
			t.Errorf("a new resource must get a rule: got %v", rules)
		}
		if status, denied := r.ask(t, "/ops/validate/quota", widgets); status != http.StatusOK || denied != "no" {
			t.Errorf("a new resource must be reviewed: got %d %q", status, denied)
		}
		server.Delete(definitionResource, "", "widgets.example.org")
		time.Sleep(30 * time.Second)
		if rules := entries(t, server, validatingResource)["quota.ops.example.org"].Rules; len(rules) != 0 {
			t.Errorf("a removed resource must lose its rule: got %v", rules)
		}
	})
}

// TestOrderOfStart shows that the entries are written only when requests can be answered.
func TestOrderOfStart(t *testing.T) {
	const indices, server, certificate = 0, 1, 2
	for name, order := range map[string][3]int{
		"IndicesLast": {server, certificate, indices}, "ServerLast": {certificate, indices, server},
		"CertificateLast": {server, indices, certificate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ready [3]chan struct{}
				for i := range ready {
					ready[i] = make(chan struct{})
				}
				api := cluster(widgets)
				o := options(api, newRegistration(widgets, "quota", ""))
				o.HandlersReady, o.StartedChecker = ready[indices],
					func(*http.Request) error { return checked(ready[server]) }
				o.Certificates, o.CADumpFile = lateSource{ready[certificate]}, filepath.Join(t.TempDir(), "ca.crt")
				r := start(t, o)
				defer r.stop(t)
				for _, next := range order {
					if all := entries(t, api, validatingResource); len(all) != 0 {
						t.Errorf("an entry is written too early, before %d: got %v", next, all)
					}
					unready := r.CheckReadiness(nil) != nil
					status, _ := r.ask(t, "/ops/validate/quota", widgets)
					if closed := checked(ready[indices]) != nil; unready != closed || (status == 503) != closed {
						t.Errorf("only the indices must decide about requests, before %d: got %d", next, status)
					}
					close(ready[next])
					time.Sleep(time.Second)
				}
				told := entries(t, api, validatingResource)["quota.ops.example.org"].ClientConfig.CABundle
				dumped, err := os.ReadFile(o.CADumpFile)
				if err != nil || string(told) != "bundle" || string(dumped) != "bundle" {
					t.Errorf("the entry and the file must have the bundle: got %q, %q and the error %v",
						told, dumped, err)
				}
			})
		})
	}
}

// checked returns an error until the channel is closed.
func checked(ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	default:
		return errors.New("not yet")
	}
}

// lateSource is a certificate source that has its certificate as soon as the channel is closed.
type lateSource struct{ ready <-chan struct{} }

func (l lateSource) Run(ctx context.Context, told func(bundle []byte)) error {
	select {
	case <-ctx.Done():
	case <-l.ready:
		told([]byte("bundle"))
		<-ctx.Done()
	}
	return nil
}

func (lateSource) Check() error { return nil }

func (lateSource) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("none")
}

// renewingSource is a certificate source that only reports bundles.
type renewingSource chan string

func (r renewingSource) Run(ctx context.Context, told func(bundle []byte)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case bundle := <-r:
			told([]byte(bundle))
		}
	}
}

func (renewingSource) Check() error { return nil }

func (renewingSource) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("none")
}

func TestAsKopf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(widgets)
		o := options(server, newRegistration(widgets, "Quota", "no"))
		o.AsKopf, o.Path = true, ""
		r := start(t, o)
		defer r.stop(t)
		entry, there := entries(t, server, validatingResource)["Quota.shared"]
		if !there || *entry.ClientConfig.URL != "https://here/ops/Quota" {
			t.Errorf("the name and the path must be those of Kopf: got %+v", entry)
		}
		if status, denied := r.ask(t, "/Quota", widgets); status != http.StatusOK || denied != "no" {
			t.Errorf("the path must be served: got %d %q", status, denied)
		}
		if status, denied := r.ask(t, "/", widgets); status != http.StatusOK || denied != "no" {
			t.Errorf("the root must call all handlers: got %d %q", status, denied)
		}
		for _, path := range []string{"/unknown", "/validate/Quota", "/Quota/"} {
			if status, denied := r.ask(t, path, widgets); status != http.StatusNotFound {
				t.Errorf("an unknown id must not be found: got %d %q for %s", status, denied, path)
			}
		}
	})
}

// TestKopfsPaths shows that the paths of configurations that were written for Kopf are served, if AtRoot is set.
func TestKopfsPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cluster(widgets)
		mutate := newRegistration(widgets, "quota", "")
		mutate.Handler.Mutating = true
		o := options(server, mutate, newRegistration(widgets, "quota", "no"),
			newRegistration(widgets, "other", "never"))
		o.AtRoot = true
		r := start(t, o)
		defer r.stop(t)
		for path, want := range map[string]string{
			"/quota": "no", "/ops/quota": "no", "/": "no", "/ops/": "no", "/ops/validate/quota": "no",
			"/ops/mutate/quota": "", "/other": "never",
		} {
			if status, denied := r.ask(t, path, widgets); status != http.StatusOK || denied != want {
				t.Errorf("%s: got %d %q, want %q", path, status, denied, want)
			}
		}
		if status, denied := r.ask(t, "/quote", widgets); status != http.StatusNotFound {
			t.Errorf("an unknown id must not be found: got %d %q", status, denied)
		}
	})
}

func TestMistakes(t *testing.T) {
	server := cluster()
	for name, change := range map[string]func(o *admission.Options){
		"a missing way to the server": func(o *admission.Options) { o.ClientConfig = nil },
		"an invalid path":             func(o *admission.Options) { o.Path = "ops/" },
		"two handlers with one path": func(o *admission.Options) {
			o.Registrations = append(o.Registrations, newRegistration(widgets, "quota", ""))
		},
		"two entries with one name": func(o *admission.Options) {
			o.Registrations = append(o.Registrations, newRegistration(widgets, "a_b", ""),
				newRegistration(widgets, "a-b", ""))
		},
	} {
		o := options(server, newRegistration(widgets, "quota", ""))
		change(&o)
		if _, err := admission.New(o); err == nil || !strings.Contains(err.Error(), "ops.example.org") {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

// TestForbiddenWithoutHandlers shows that an operator without handlers, which only looks for entries of a former
// version, does not end its process if that is forbidden.
func TestForbiddenWithoutHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, verb := range []string{"get", "watch"} {
			connection := cluster(widgets).Connect()
			connection.Before = forbidding(verb)
			var mu sync.Mutex
			warned := 0
			o := options(connection)
			o.Log = funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(args, "Cannot look for webhook entries") {
					warned++
				}
			}, funcr.Options{})
			r := start(t, o)
			time.Sleep(time.Hour)
			synctest.Wait()
			select {
			case err := <-r.runResult:
				t.Errorf("%s: the manager ends with %v", verb, err)
			default:
			}
			mu.Lock()
			if warned > 1 || verb == "get" && warned == 0 {
				t.Errorf("%s: warned %d times", verb, warned)
			}
			mu.Unlock()
			r.cancel()
			if err := <-r.runResult; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := cluster(widgets).Connect()
		connection.Before = forbidding("patch")
		r := start(t, options(connection, newRegistration(widgets, "quota", "")))
		if err := <-r.runResult; err == nil || !strings.Contains(err.Error(), "may not manage") {
			t.Errorf("a forbidden write must end the operator: got the error %v", err)
		}
	})
}
