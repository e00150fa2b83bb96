package certificates_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kopf-runtime/kopf-runtime/webhooks/certificates"
)

func TestForeign(t *testing.T) {
	if _, err := certificates.ForeignSource("/nowhere", nil); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a missing file must be an error: got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.crt")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		one, two := certificateOf(t, "one"), certificateOf(t, "two")
		write(one)
		source, err := certificates.ForeignSource(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var told []string
		ended := make(chan error, 1)
		go func() { ended <- source.Run(ctx, func(bundle []byte) { told = append(told, string(bundle)) }) }()
		time.Sleep(150 * time.Second)
		write("")
		time.Sleep(5 * time.Minute)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		write(two)
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-ended; err != nil || !slices.Equal(told, []string{one, two}) {
			t.Errorf("each bundle must be reported once: got %q and the error %v", told, err)
		}
		if _, err := source.GetCertificate(nil); err == nil {
			t.Error("a foreign source must not have a certificate")
		}
	})
}

// certificateOf returns a certificate of the host, in PEM.
func certificateOf(t *testing.T, host string) string {
	t.Helper()
	return string(write(t, t.TempDir(), host))
}

// TestBundleHasOnlyCertificates shows that only the certificates of a file are published.
func TestBundleHasOnlyCertificates(t *testing.T) {
	folder := t.TempDir()
	cert := string(write(t, folder, "host"))
	data, err := os.ReadFile(filepath.Join(folder, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := string(data)
	for name, tc := range map[string]struct{ reason, given, want, fault string }{
		"Combined": {"a private key and comments are left out", key + cert + "# a comment\n" + cert, cert + cert, ""},
		"Key":      {"a key without a certificate is an error", key, "", "there is no certificate"},
		"Text":     {"a text without PEM is an error", "a CA", "", "there is no certificate"},
		"Malformed": {"a malformed certificate is an error",
			cert + strings.Replace(cert, "MII", "AAA", 1), "", "certificate 2"},
		"Truncated": {"a truncated certificate is an error",
			cert + cert[:len(cert)-40], "", "one of its certificates is not PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, name)
			if err := os.WriteFile(path, []byte(tc.given), 0o600); err != nil {
				t.Fatal(err)
			}
			pair := certificates.Files{
				Certificate: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"),
			}
			fromFile, fromData := pair, pair
			fromFile.CA, fromData.Bundle = path, []byte(tc.given)
			for way, open := range map[string]func() (certificates.Source, error){
				"foreign file": func() (certificates.Source, error) { return certificates.ForeignSource(path, nil) },
				"foreign data": func() (certificates.Source, error) {
					return certificates.ForeignSource("", []byte(tc.given))
				},
				"CA file": fromFile.Open,
				"bundle":  fromData.Open,
			} {
				source, err := open()
				if tc.fault != "" {
					if err == nil || !strings.Contains(err.Error(), tc.fault) {
						t.Errorf("%s: %s: got the error %v, want %q", way, tc.reason, err, tc.fault)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				told := make(chan []byte, 1)
				r := run(t, source, func(bundle []byte) { told <- bundle })
				if got := string(<-told); got != tc.want {
					t.Errorf("%s: %s: got %q, want %q", way, tc.reason, got, tc.want)
				}
				if err := r.stop(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestClientsWithoutCAs shows that a missing or empty file of client CAs is an error.
func TestClientsWithoutCAs(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "clients.crt")
	if err := os.WriteFile(empty, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/nowhere": "reading the CAs", empty: "there is no certificate in " + empty,
	} {
		if err := (certificates.ClientVerification{File: file}).CheckFile(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got the error %v", want, err)
		}
	}
}
