package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
)

// probeName is the user that asks whether servers are ready; the audit log leaves it out.
const probeName = "controlplane-probe"

// adminClient talks to the API server with every right, without a proxy in between.
func (c *ControlPlane) adminClient() (*http.Client, error) {
	credentials, err := c.ca.user(probeName, []string{adminGroup})
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(credentials.certificate, credentials.key)
	if err != nil {
		return nil, fmt.Errorf("reading the probe's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.certificate)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}, nil
}

// get asks once; every answer but 200 is an error.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
