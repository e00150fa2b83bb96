package certificates_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

var secretResource = memapi.Resource{Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true}

// rotation returns the rotation of an operator whose certificates last an hour.
func rotation(t *testing.T, transport http.RoundTripper) certificates.Rotation {
	t.Helper()
	client, err := certificates.NewClient(memapi.Config(transport), nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificates.Rotation{
		Client: client, Namespace: "ns", Name: "webhooks", Operator: "ops", Hosts: []string{"ops.ns.svc"},
		Lifetime: time.Hour, Overlap: 5 * time.Minute,
	}
}

func open(t *testing.T, r certificates.Rotation) certificates.Source {
	t.Helper()
	source, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// delayedTrust is the knowledge of an API server: the bundle that any replica reported, a minute later.
type delayedTrust struct {
	mu     sync.Mutex
	bundle []byte
}

func (c *delayedTrust) publishBundle(bundle []byte) {
	time.AfterFunc(time.Minute, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bundle = bundle
	})
}

func (c *delayedTrust) known() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bundle
}

func TestRotationServesAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, known := memapi.New(), &delayedTrust{}
		began, late := time.Now(), server.Connect()
		late.Before = func(context.Context, memapi.Request) error {
			if age := time.Since(began); age > 39*time.Minute && age < 58*time.Minute {
				return memapi.NewRefusal(http.StatusServiceUnavailable) // so this replica keeps the former certificate
			}
			return nil
		}
		replicas := []*runningSource{
			run(t, open(t, rotation(t, server)), known.publishBundle),
			run(t, open(t, rotation(t, late)), known.publishBundle),
		}
		seen := map[string]bool{}
		time.Sleep(2 * time.Minute)
		for second := 0; second < 6*60*60; second += 20 {
			time.Sleep(20 * time.Second)
			for i, replica := range replicas {
				certificate, err := connect(replica, known.known(), "ops.ns.svc")
				if err != nil {
					t.Fatalf("replica %d refuses a client after %d s: %v", i, second, err)
				}
				seen[certificate.SerialNumber.String()] = true
			}
			if second == 2*60*60 {
				if err := replicas[0].stop(); err != nil {
					t.Error(err)
				}
				replicas[0] = run(t, open(t, rotation(t, server)), known.publishBundle)
				synctest.Wait()
			}
		}
		if len(seen) < 8 || len(seen) > 10 {
			t.Errorf("in 6 hours, certificates of an hour must be renewed each 40 minutes: got %d of them", len(seen))
		}
		if n := strings.Count(string(known.known()), "BEGIN"); n > 3 {
			t.Errorf("expired certificates must be removed from the bundle: got %d certificates", n)
		}
		for _, replica := range replicas {
			if err := replica.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestRotationGoesOnWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		connection := server.Connect()
		var away sync.Map
		connection.Before = func(context.Context, memapi.Request) error {
			if _, is := away.Load("away"); is {
				return memapi.NewRefusal(http.StatusServiceUnavailable)
			}
			return nil
		}
		away.Store("away", true)
		r := run(t, open(t, rotation(t, connection)))
		synctest.Wait()
		if _, err := r.GetCertificate(nil); err == nil {
			t.Error("a source without a certificate must return an error")
		}
		away.Delete("away")
		time.Sleep(2 * time.Minute)
		bundle, _ := r.last()
		away.Store("away", true)
		time.Sleep(45 * time.Minute)
		if _, err := connect(r, bundle, "ops.ns.svc"); err != nil {
			t.Errorf("a certificate that cannot be renewed must be served until it expires: got the error %v", err)
		}
		away.Delete("away")
		time.Sleep(time.Hour)
		bundle, _ = r.last()
		if _, err := connect(r, bundle, "ops.ns.svc"); err != nil {
			t.Errorf("the certificate must be renewed later: got the error %v", err)
		}
	})
}

func TestRotationOfOtherHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		connection := server.Connect()
		before := run(t, open(t, rotation(t, connection)))
		synctest.Wait()
		moved := rotation(t, connection)
		moved.Hosts = []string{"new.ns.svc", "10.0.0.1"}
		after := run(t, open(t, moved))
		time.Sleep(10 * time.Minute)
		for _, host := range []string{"ops.ns.svc", "new.ns.svc", "10.0.0.1"} {
			for _, replica := range []*runningSource{before, after} {
				bundle, _ := replica.last()
				if _, err := connect(replica, bundle, host); err != nil {
					t.Errorf("both versions must be served while both run: %s: %v", host, err)
				}
			}
		}
		writes := 0
		for _, request := range connection.DrainRequests() {
			if request.Verb != "get" && request.Code < 300 {
				writes++
			}
		}
		if writes != 3 {
			t.Errorf("want three writes of the Secret, for its creation, its successor and the change: got %d", writes)
		}
	})
}

func TestRotationMistakes(t *testing.T) {
	for name, change := range map[string]func(r *certificates.Rotation){
		"no hosts":                               func(r *certificates.Rotation) { r.Hosts = nil },
		"an overlap that leaves hardly any time": func(r *certificates.Rotation) { r.Overlap = 20 * time.Minute },
	} {
		r := rotation(t, memapi.New())
		change(&r)
		if _, err := r.Open(); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestRotationForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := memapi.New().Connect()
		connection.Before = func(context.Context,
			memapi.Request) error {
			return memapi.NewRefusal(http.StatusForbidden)
		}
		r := run(t, open(t, rotation(t, connection)))
		if err := <-r.runResult; err == nil || !strings.Contains(err.Error(), "grant") {
			t.Errorf("a forbidden write must end the source: got the error %v", err)
		}
	})
}

func TestRotationLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		cert, key := issueCertificate(t)
		data := map[string]any{"tls.crt": cert, "tls.key": key}
		server.Put(secretResource, map[string]any{
			"metadata": map[string]any{"namespace": "ns", "name": "webhooks", "uid": "1"}, "data": data,
		})
		r := run(t, open(t, rotation(t, server)))
		if err := <-r.runResult; err == nil || !strings.Contains(err.Error(), "another CA") {
			t.Errorf("a foreign certificate must not be replaced: got the error %v", err)
		}
	})
}

// TestRotationBegins shows that the first certificate of an operator is ready at once: no API server trusts another.
func TestRotationBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, open(t, rotation(t, memapi.New())))
		synctest.Wait()
		if err := r.Check(); err != nil {
			t.Errorf("the first certificate replaces none, so it must be ready at once: got the error %v", err)
		}
	})
}
