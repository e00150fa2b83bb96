package certificates_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

func TestSelfSigned(t *testing.T) {
	if _, err := certificates.SelfSignedSource(); err == nil {
		t.Error("a certificate without hosts must be an error")
	}
	source, err := certificates.SelfSignedSource("host.example.org", "127.0.0.1", "::1", "more")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan []byte, 1)
	r := run(t, source, func(bundle []byte) { told <- bundle })
	bundle := <-told
	for host, fine := range map[string]bool{
		"host.example.org": true, "127.0.0.1": true, "::1": true, "more": true, "other": false,
	} {
		certificate, err := connect(source, bundle, host)
		if (err == nil) != fine {
			t.Errorf("connecting to %s: got the error %v", host, err)
		}
		if fine && certificate.Subject.CommonName != "host.example.org" {
			t.Errorf("the first host must be the common name: got %s", certificate.Subject.CommonName)
		}
	}
	if err := r.stop(); err != nil {
		t.Errorf("the stop must not return an error: got %v", err)
	}
}

func TestDump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	for _, bundle := range []string{"first", "second, and longer"} {
		if err := certificates.DumpBundle(path, []byte(bundle)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != bundle {
			t.Errorf("got %q and the error %v, want %q", got, err, bundle)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("no other file must be left: got %v and the error %v", left, err)
	}
	if err := certificates.DumpBundle(filepath.Join(t.TempDir(), "no", "ca.crt"), nil); err == nil {
		t.Error("a missing folder must be an error")
	}
}

// write writes a new certificate of the host into files and returns it in PEM.
func write(t *testing.T, folder, host string) []byte {
	t.Helper()
	source, err := certificates.SelfSignedSource(host)
	if err != nil {
		t.Fatal(err)
	}
	made, err := source.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})
	for name, content := range map[string][]byte{"tls.crt": cert, "tls.key": keyOf(t, made.PrivateKey)} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

func TestFiles(t *testing.T) {
	folder := t.TempDir()
	first := write(t, folder, "first")
	given := certificates.Files{
		Certificate: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"),
	}
	source, err := given.Open()
	if err != nil {
		t.Fatal(err)
	}
	bundles := make(chan []byte, 10)
	r := run(t, source, func(bundle []byte) { bundles <- bundle })
	if got := <-bundles; !bytes.Equal(got, first) {
		t.Errorf("the bundle must be the certificate itself: got %s", got)
	}
	if _, err := connect(source, first, "first"); err != nil {
		t.Errorf("the certificate must be served: got the error %v", err)
	}
	second := renewed(t, folder, bundles)
	// The file of the bundle can be read before the watcher has read the certificate with its key.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := connect(source, second, "second")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the new certificate must be served: got the error %v", err)
		}
	}
	if err := r.stop(); err != nil {
		t.Errorf("the stop must not return an error: got %v", err)
	}
}

// renewed writes certificates until one is noticed, as the first one may be written before the files are watched.
func renewed(t *testing.T, folder string, bundles <-chan []byte) []byte {
	t.Helper()
	for {
		written := write(t, folder, "second")
		select {
		case got := <-bundles:
			if bytes.Equal(got, written) {
				return got
			}
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("a new certificate was not noticed")
		}
	}
}

func TestFilesBundle(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "host")
	ca := filepath.Join(folder, "ca.crt")
	given := certificates.Files{
		Certificate: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"), CA: ca,
	}
	if _, err := given.Open(); err == nil {
		t.Error("a missing file of the bundle must be an error")
	}
	if err := os.WriteFile(ca, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := given.Open(); err == nil || !strings.Contains(err.Error(), ca+" is empty") {
		t.Errorf("an empty bundle must be an error, as API servers would trust the CAs of their system: got %v", err)
	}
	fromFile, fromData := certificateOf(t, "file"), certificateOf(t, "data")
	if err := os.WriteFile(ca, []byte(fromFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, bundle := range map[string][]byte{fromFile: nil, fromData: []byte(fromData)} {
		given.Bundle = bundle
		source, err := given.Open()
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan []byte, 1)
		r := run(t, source, func(bundle []byte) { told <- bundle })
		if got := string(<-told); got != want {
			t.Errorf("got the bundle %q, want %q", got, want)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}
	given.Key = filepath.Join(folder, "none")
	if _, err := given.Open(); err == nil {
		t.Error("a missing key must be an error")
	}
}
