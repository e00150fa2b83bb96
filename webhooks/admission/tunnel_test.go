package admission_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kopf-runtime/kopf-runtime/webhooks/admission"
	"github.com/kopf-runtime/kopf-runtime/webhooks/tunnels"
)

// TestTunnel shows that a moved tunnel and a renewed certificate are written to the entries.
func TestTunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := cluster(widgets)
		o := options(api, newRegistration(widgets, "quota", ""))
		moved, renewed := make(chan string), make(chan string)
		o.ClientConfig, o.Tunnel, o.LocalServer = nil, moving(moved), tunnels.Local{Address: "127.0.0.1:9443"}
		o.Certificates = renewingSource(renewed)
		r := start(t, o)
		defer r.stop(t)
		want := func(url, bundle string) {
			t.Helper()
			time.Sleep(time.Second)
			got := entries(t, api, validatingResource)["quota.ops.example.org"].ClientConfig
			if got.URL == nil || *got.URL != url || string(got.CABundle) != bundle {
				t.Errorf("want %s and %s, got %+v", url, bundle, got)
			}
		}
		renewed <- "first"
		moved <- "https://one"
		want("https://one/127.0.0.1:9443/ops/validate/quota", "first")
		renewed <- "second"
		want("https://one/127.0.0.1:9443/ops/validate/quota", "second")
		moved <- "https://two"
		want("https://two/127.0.0.1:9443/ops/validate/quota", "second")
	})
}

// moving is a tunnel that reports each address it receives, with the address of the server.
type moving chan string

func (m moving) Run(
	ctx context.Context, to tunnels.Local, told func(admissionregistrationv1.WebhookClientConfig),
) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case where := <-m:
			told(tunnels.ByURL(where+"/"+to.Address+to.Path, to.Bundle))
		}
	}
}

// TestTunnelFails shows that a tunnel that ends for any reason is opened again, at growing intervals until it works
// (D-tunnel-exit). The exception is a terminal error.
func TestTunnelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := cluster(widgets)
		o := options(api, newRegistration(widgets, "quota", ""))
		var calls atomic.Int32
		began := time.Now()
		var at []time.Duration
		o.Tunnel = tunnels.Func(func(
			ctx context.Context, to tunnels.Local, told func(admissionregistrationv1.WebhookClientConfig),
		) error {
			at = append(at, time.Since(began).Round(time.Second))
			switch calls.Add(1) {
			case 1:
				return errors.New("no network")
			case 2:
				panic("no account")
			case 3:
				return nil
			case 4:
				told(tunnels.ByURL("https://there", nil))
				return errors.New("kicked out")
			case 5:
				told(tunnels.ByURL("https://elsewhere", nil))
				<-ctx.Done()
			}
			return nil
		})
		r := start(t, o)
		time.Sleep(time.Minute)
		if got := entries(t, api, validatingResource)["quota.ops.example.org"].ClientConfig.URL; got == nil ||
			*got != "https://elsewhere/validate/quota" {
			t.Errorf("the last address must be written: got %v", got)
		}
		r.stop(t)
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 8 * time.Second}
		for i, one := range want {
			if len(at) != len(want) || at[i] != one {
				t.Fatalf("want calls at %v, got %v", want, at)
			}
		}
	})
}

func TestTunnelIsOfNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(cluster(widgets), newRegistration(widgets, "quota", ""))
		o.Tunnel = tunnels.Func(func(
			context.Context, tunnels.Local, func(admissionregistrationv1.WebhookClientConfig),
		) error {
			return reconcile.TerminalError(errors.New("the token is wrong"))
		})
		made, err := admission.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := made.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "the token is wrong") {
			t.Errorf("a terminal error must end the operator: got the error %v", err)
		}
	})
}

// TestTunnelOutlivesTheEntries shows that a tunnel stays open until its entries are removed, so that requests on
// their way arrive.
func TestTunnelOutlivesTheEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := cluster(widgets)
		o := options(api, newRegistration(widgets, "quota", ""))
		left := -1
		o.Tunnel = tunnels.Func(func(
			ctx context.Context, to tunnels.Local, told func(admissionregistrationv1.WebhookClientConfig),
		) error {
			told(tunnels.ByURL("https://there", nil))
			<-ctx.Done()
			left = len(entries(t, api, validatingResource))
			return nil
		})
		r := start(t, o)
		time.Sleep(time.Second)
		if len(entries(t, api, validatingResource)) != 1 {
			t.Error("the entry must be written")
		}
		r.stop(t)
		if left != 0 {
			t.Errorf("the tunnel is closed while %d entries lead to it", left)
		}
	})
}
