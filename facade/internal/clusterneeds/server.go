package clusterneeds

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/kopf-runtime/kopf-runtime/facade/internal/clusterops"
	"github.com/kopf-runtime/kopf-runtime/internal/discovery"
)

// requestTimeout limits each request, so that one without an answer does not delay the others for long.
const requestTimeout = 10 * time.Second

// Server is the API server that is checked, with the permissions of the operator. It is used by one goroutine.
type Server struct {
	*clusterops.Cluster

	api   authorizationv1client.AuthorizationV1Interface // for reviews, and for requests by their paths
	clock *clock
}

// Connect returns the API server of a configuration. The client is that of the configuration; nil makes one.
func Connect(config *rest.Config, client *http.Client) (*Server, error) {
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("connecting to the API server: %w", err)
		}
	}
	// The clock reads the answers to requests of the checks only, so the shared client stays as it is.
	watched := &clock{next: client.Transport}
	if watched.next == nil {
		watched.next = http.DefaultTransport
	}
	own := &http.Client{Transport: watched, Timeout: min(cmp.Or(client.Timeout, requestTimeout), requestTimeout)}
	cluster, err := clusterops.ConnectBy(config, own)
	if err != nil {
		return nil, err
	}
	api, err := authorizationv1client.NewForConfigAndClient(cluster.Config, own)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	cluster.Getter = discovery.NewInquiry(cluster.Getter, nil) // it requests each document once
	return &Server{cluster, api, watched}, nil
}

// clock compares the local time with the Date header of answers.
type clock struct {
	next  http.RoundTripper
	known bool          // an answer had a date
	took  time.Duration // of the answer with the best estimate
	skew  time.Duration // of the local clock
}

// RoundTrip implements [http.RoundTripper].
func (c *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := c.next.RoundTrip(r)
	if err == nil && answer.Header.Get("Age") == "" { // a cache sends the date of the original answer
		c.compare(sent, time.Since(sent), answer.Header.Get("Date"))
	}
	return answer, err
}

// compare estimates the skew. The answer with the shortest time has the best estimate.
func (c *clock) compare(sent time.Time, took time.Duration, date string) {
	server, err := http.ParseTime(date)
	if err != nil {
		return
	}
	if !c.known || took < c.took {
		c.known, c.took, c.skew = true, took, certainSkew(sent, took, server)
	}
}

// certainSkew returns by how much the local clock is ahead of the server, or behind it if negative. It is the smallest
// difference that explains the times: the server has sent its time, in whole seconds, while the request was running.
func certainSkew(sent time.Time, took time.Duration, server time.Time) time.Duration {
	switch earliest, latest := sent, sent.Add(took); {
	case earliest.After(server.Add(time.Second)):
		return earliest.Sub(server.Add(time.Second))
	case latest.Before(server):
		return latest.Sub(server)
	}
	return 0
}
