package e2e_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// badReviews lists requests that an API server never sends, with the expected responses.
var badReviews = map[string]struct {
	method, id, body string
	status           int
	wantText         string
}{
	"not JSON":   {http.MethodPost, "size", "kind: AdmissionReview", 400, "not a JSON object"},
	"other kind": {http.MethodPost, "size", `{"kind":"Pod","apiVersion":"v1"}`, 400, "no AdmissionReview"},
	"no uid":     {http.MethodPost, "size", review(`"uid":""`), 400, "has no uid"},
	"no object":  {http.MethodPost, "size", review(`"object":null`), 400, "no object"},
	"other resource": {
		http.MethodPost, "size", review(`"resource":{"version":"v1","resource":"secrets"}`), 404, "no handler reviews",
	},
	"too large":       {http.MethodPost, "size", strings.Repeat(" ", 10<<20), 413, "bytes at most"},
	"unknown handler": {http.MethodPost, "none", "{}", 404, "no handler of admission at this path"},
	"reading":         {http.MethodGet, "size", "", 405, "by POST"},
}

// review returns a valid review except for the given field.
func review(field string) string {
	request := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",` +
		`"resource":{"group":"e2e.example.org","version":"v1","resource":"widgets"},"operation":"CREATE",` +
		`"userInfo":{"username":"ann"},"object":{"metadata":{"name":"w"}}`
	return request + "," + field + "}}" // the last of two fields with the same name counts
}

// sendBadReviews sends all bad reviews to the handler endpoints below a path, while another client holds a request open
// that never ends.
func sendBadReviews(ctx context.Context, address, path string) {
	GinkgoHelper()
	strangers := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is not what is tested
	}}
	defer strangers.CloseIdleConnections()
	send := func(method, url string, body io.Reader) (int, string) {
		GinkgoHelper()
		request, err := http.NewRequestWithContext(ctx, method, url, body)
		Expect(err).NotTo(HaveOccurred())
		response, err := strangers.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		return response.StatusCode, string(text)
	}
	slow, end := io.Pipe()
	defer end.Close()
	given := make(chan int, 1)
	go func() {
		defer GinkgoRecover()
		status, _ := send(http.MethodPost, "https://"+address+path+"size", slow)
		given <- status
	}()
	_, err := io.WriteString(end, "{")
	Expect(err).NotTo(HaveOccurred())
	for name, bad := range badReviews {
		status, text := send(bad.method, "https://"+address+path+bad.id, strings.NewReader(bad.body))
		Expect(status).To(Equal(bad.status), name)
		Expect(text).To(ContainSubstring(bad.wantText), name)
	}
	status, text := send(http.MethodPost, "http://"+address+path+"size", strings.NewReader("{}"))
	Expect(status).To(Equal(http.StatusBadRequest), "a request without TLS is rejected")
	Expect(text).To(ContainSubstring("HTTPS"))
	Eventually(given).Should(Receive(Equal(http.StatusRequestTimeout)),
		"a client that never completes its request times out")
}
