package certificates_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/facade/facadetest/memapi"
	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

// ledger is a ledger in memory.
type ledger struct {
	mu        sync.Mutex
	recorded  []string
	published []byte
}

func (l *ledger) Read(context.Context) ([]string, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.recorded), l.published, nil
}

func (l *ledger) Record(_ context.Context, fingerprints []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range fingerprints {
		if !slices.Contains(l.recorded, one) {
			l.recorded = append(l.recorded, one)
		}
	}
	return nil
}

// publish stores a bundle, as a webhook configuration does.
func (l *ledger) publish(bundle []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published = bundle
}

// recorded returns a rotation with a ledger.
func recorded(t *testing.T, transport http.RoundTripper, l *ledger) certificates.Rotation {
	t.Helper()
	r := rotation(t, transport)
	r.Ledger = l
	return r
}

// selfSigned returns a foreign pair for the host of the operator, in PEM.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	source, err := certificates.SelfSignedSource("ops.ns.svc")
	if err != nil {
		t.Fatal(err)
	}
	made, err := source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}), keyOf(t, made.PrivateKey)
}

// putSecret writes keys of the Secret, as a tenant can do.
func putSecret(server *memapi.Server, data map[string][]byte) {
	encoded := map[string]any{}
	if object := server.Object(secretResource, "ns", "webhooks"); object != nil {
		encoded, _ = object["data"].(map[string]any)
	}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	server.Put(secretResource, map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "webhooks"}, "data": encoded,
	})
}

// secretData returns one key of the Secret.
func secretData(server *memapi.Server, key string) []byte {
	data, _ := server.Object(secretResource, "ns", "webhooks")["data"].(map[string]any)
	text, _ := data[key].(string)
	decoded, _ := base64.StdEncoding.DecodeString(text)
	return decoded
}

func TestForeignSecretIsNotServed(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, server *memapi.Server) []byte{
		"SelfSigned": func(t *testing.T, server *memapi.Server) []byte {
			cert, key := selfSigned(t)
			putSecret(server, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": cert})
			return cert
		},
		"Next": func(t *testing.T, server *memapi.Server) []byte {
			cert, key := selfSigned(t)
			putSecret(server, map[string][]byte{"next.crt": cert, "next.key": key})
			return cert
		},
		"OtherCA": func(t *testing.T, server *memapi.Server) []byte {
			cert, key := issueCertificate(t)
			plain, _ := base64.StdEncoding.DecodeString(cert)
			private, _ := base64.StdEncoding.DecodeString(key)
			putSecret(server, map[string][]byte{"tls.crt": plain, "tls.key": private})
			return plain
		},
		"CA": func(t *testing.T, server *memapi.Server) []byte {
			cert, _ := selfSigned(t)
			putSecret(server, map[string][]byte{"ca.crt": append(secretData(server, "ca.crt"), cert...)})
			return cert
		},
	} {
		for _, when := range []string{"Before", "Later"} {
			t.Run(name+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server, records := memapi.New(), &ledger{}
					var foreign []byte
					if when == "Before" {
						foreign = plant(t, server)
					}
					r := run(t, open(t, recorded(t, server, records)), records.publish)
					time.Sleep(time.Minute)
					served, _ := r.GetCertificate(nil)
					if when == "Later" {
						foreign = plant(t, server)
						time.Sleep(2 * time.Minute)
					}
					bundle, _ := r.last()
					certificate, err := connect(r, bundle, "ops.ns.svc")
					if err != nil || !certificate.Equal(served.Leaf) {
						t.Errorf("the operator must keep serving its own certificate: got %v", err)
					}
					if bytes.Contains(bundle, foreign) {
						t.Error("the bundle has the foreign certificate")
					}
					for _, key := range []string{"ca.crt", "tls.crt", "next.crt"} {
						if bytes.Contains(secretData(server, key), foreign) {
							t.Errorf("%s has the foreign certificate", key)
						}
					}
				})
			})
		}
	}
}

// TestLifetimesAreBounded shows that a certificate that lasts longer than those of the operator is replaced even if
// it is recorded.
func TestLifetimesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, records := memapi.New(), &ledger{}
		long := recorded(t, server, records)
		long.Lifetime = 100 * 365 * 24 * time.Hour
		first := run(t, open(t, long))
		synctest.Wait()
		if err := first.stop(); err != nil {
			t.Fatal(err)
		}
		r := run(t, open(t, recorded(t, server, records)))
		synctest.Wait()
		bundle, _ := r.last()
		certificate, err := connect(r, bundle, "ops.ns.svc")
		if err != nil || time.Until(certificate.NotAfter) > time.Hour || strings.Count(string(bundle), "BEGIN") != 1 {
			t.Errorf("a certificate of 100 years must be replaced: got %v and the bundle %s", err, bundle)
		}
	})
}

// TestPublishedCertificateIsReplacedLater shows that a published certificate of a version without a ledger is
// replaced like an old one, without a failed connection.
func TestPublishedCertificateIsReplacedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, records, known := memapi.New(), &ledger{}, &delayedTrust{}
		before := run(t, open(t, rotation(t, server)), known.publishBundle, records.publish)
		time.Sleep(2 * time.Minute)
		former := secretData(server, "tls.crt")
		after := run(t, open(t, recorded(t, server, records)), known.publishBundle, records.publish)
		for second := 0; second < 20*60; second += 10 {
			time.Sleep(10 * time.Second)
			for i, replica := range []*runningSource{before, after} {
				if _, err := connect(replica, known.known(), "ops.ns.svc"); err != nil {
					t.Fatalf("version %d refuses a client after %d s: %v", i, second, err)
				}
			}
		}
		bundle, _ := after.last()
		if bytes.Contains(bundle, former) || bytes.Equal(former, secretData(server, "tls.crt")) {
			t.Error("the certificate without a record must be gone after two overlaps")
		}
	})
}

func TestClockAhead(t *testing.T) {
	var secret map[string]any
	records := &ledger{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		server := memapi.New()
		run(t, open(t, recorded(t, server, records)))
		synctest.Wait()
		secret = server.Object(secretResource, "ns", "webhooks")
	})
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		server.Put(secretResource, secret)
		for _, l := range []*ledger{records, nil} {
			source := rotation(t, server)
			if l != nil {
				source.Ledger = l
			}
			r := run(t, open(t, source))
			synctest.Wait()
			bundle, _ := r.last()
			if _, err := connect(r, bundle, "ops.ns.svc"); err != nil {
				t.Errorf("a certificate that is not valid yet must be replaced: got %v", err)
			}
			server.Put(secretResource, secret)
			time.Sleep(2 * time.Minute)
			if _, err := connect(r, bundle, "ops.ns.svc"); err != nil {
				t.Errorf("a certificate in use must not be replaced by one that is not valid yet: got %v", err)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestDeletedSecret(t *testing.T) {
	for name, damage := range map[string]func(server *memapi.Server){
		"Deleted": func(server *memapi.Server) { server.Delete(secretResource, "ns", "webhooks") },
		"Damaged": func(server *memapi.Server) { putSecret(server, map[string][]byte{"tls.key": []byte("?")}) },
		"Empty":   func(server *memapi.Server) { putSecret(server, map[string][]byte{"tls.crt": nil, "ca.crt": nil}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, records, known := memapi.New(), &ledger{}, &delayedTrust{}
				first := run(t, open(t, recorded(t, server, records)), known.publishBundle, records.publish)
				time.Sleep(150 * time.Second)
				former := secretData(server, "tls.crt")
				damage(server)
				second := run(t, open(t, recorded(t, server, records)), known.publishBundle, records.publish)
				synctest.Wait()
				if err := second.Check(); err == nil {
					t.Error("a replica must not be ready before its new certificate is known")
				}
				for range 15 * 60 {
					time.Sleep(time.Second)
					for i, replica := range []*runningSource{first, second} {
						_, err := connect(replica, known.known(), "ops.ns.svc")
						if err != nil && replica.Check() == nil {
							t.Fatalf("replica %d refuses a client: %v", i, err)
						}
					}
				}
				if bytes.Equal(former, secretData(server, "tls.crt")) {
					t.Error("a certificate whose Secret was deleted must get a successor")
				}
			})
		})
	}
}

// TestHostChangeServesAllClients shows that the certificate for a new host is served at once, and only to clients of
// the new host.
func TestHostChangeServesAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, records, known := memapi.New(), &ledger{}, &delayedTrust{}
		before := run(t, open(t, recorded(t, server, records)), known.publishBundle, records.publish)
		time.Sleep(2 * time.Minute)
		moved := recorded(t, server, records)
		moved.Hosts = []string{"new.ns.svc"}
		after := run(t, open(t, moved), known.publishBundle, records.publish)
		synctest.Wait()
		bundle, _ := after.last()
		for range 15 * 60 {
			if _, err := connect(after, bundle, "new.ns.svc"); err != nil {
				t.Fatalf("the new host must be served with the new bundle: %v", err)
			}
			for i, replica := range []*runningSource{before, after} {
				if _, err := connect(replica, known.known(), "ops.ns.svc"); err != nil {
					t.Fatalf("replica %d refuses a client of the former host: %v", i, err)
				}
			}
			time.Sleep(time.Second)
			bundle, _ = after.last()
		}
	})
}

// TestOtherCAAtWork shows that without a ledger, a pair of another CA does not end a process that has a valid
// certificate to serve.
func TestOtherCAAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New()
		r := run(t, open(t, rotation(t, server)))
		synctest.Wait()
		bundle, _ := r.last()
		cert, key := issueCertificate(t)
		plain, _ := base64.StdEncoding.DecodeString(cert)
		private, _ := base64.StdEncoding.DecodeString(key)
		putSecret(server, map[string][]byte{"tls.crt": plain, "tls.key": private})
		time.Sleep(10 * time.Minute)
		if _, err := connect(r, bundle, "ops.ns.svc"); err != nil || r.Check() != nil {
			t.Errorf("the former certificate must be served: got %v", err)
		}
		time.Sleep(time.Hour)
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), "another CA") {
			t.Errorf("a process without a valid certificate must not be ready, and must give the reason: got %v", err)
		}
		server.Delete(secretResource, "ns", "webhooks")
		time.Sleep(2 * time.Minute)
		bundle, _ = r.last()
		if _, err := connect(r, bundle, "ops.ns.svc"); err != nil || r.Check() != nil {
			t.Errorf("the process must continue when the Secret is deleted: got %v", err)
		}
		if err := r.stop(); err != nil {
			t.Errorf("the process must not end: got %v", err)
		}
	})
}

// TestDeletionsDoNotFillTheBundle shows that repeated deletions of the Secret make neither the bundle nor the ledger
// grow.
func TestDeletionsDoNotFillTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, records := memapi.New(), &ledger{}
		r := run(t, open(t, recorded(t, server, records)), records.publish)
		for range 100 {
			time.Sleep(2 * time.Minute)
			server.Delete(secretResource, "ns", "webhooks")
		}
		if bundle, _ := r.last(); strings.Count(string(bundle), "BEGIN") > 8 {
			t.Errorf("want at most 8 certificates in the bundle, got %d", strings.Count(string(bundle), "BEGIN"))
		}
		if kept, _, _ := records.Read(t.Context()); len(kept) > 50 {
			t.Errorf("want at most 50 records, got %d", len(kept))
		}
	})
}
