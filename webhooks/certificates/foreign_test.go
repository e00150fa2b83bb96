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
	if _, err := certificates.Foreign("/nowhere", nil); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("it is told at once: got the error %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.crt")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		source, err := certificates.Foreign(file, nil)
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
		write("two")
		time.Sleep(5 * time.Minute)
		cancel()
		if err := <-ended; err != nil || !slices.Equal(told, []string{"one", "two"}) {
			t.Errorf("each bundle is told once: got %q and the error %v", told, err)
		}
		if _, err := source.GetCertificate(nil); err == nil {
			t.Error("there is no certificate")
		}
	})
}

// Without CAs, nobody could be told from anybody.
func TestClientsWithoutCAs(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "clients.crt")
	if err := os.WriteFile(empty, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/nowhere": "reading the CAs", empty: "there is no certificate in " + empty,
	} {
		if err := (certificates.Clients{File: file}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got the error %v", want, err)
		}
	}
}
