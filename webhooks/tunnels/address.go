package tunnels

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"
)

// secretSize is the size of a secret: too large to be guessed.
const secretSize = 16

// defaultPorts are the default ports, which URLs leave out.
var defaultPorts = map[string]int{"http": 80, "https": 443}

// URL returns the URL of a server. IPv6 addresses are given without brackets.
func URL(scheme, host string, port int, path string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	// An unknown scheme has the default port 0, so the URL contains the port.
	if port != defaultPorts[scheme] {
		host += ":" + strconv.Itoa(port)
	}
	if path != "" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return scheme + "://" + host + path
}

// Routable returns the host by which this machine reaches a server that listens at an address. For an unspecified
// address, that is the loopback address, and for an empty one "localhost". Kopf: the same.
func Routable(address string) string {
	ip := net.ParseIP(address)
	switch {
	case address == "":
		return "localhost"
	case ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		return "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		return "::1"
	default:
		return address
	}
}

// ByURL returns the client configuration of a server outside of the cluster.
func ByURL(url string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
}

// ByService returns the client configuration of a server behind a Service in the cluster. The path may be empty.
func ByService(
	namespace, name string, port int32, path string, bundle []byte,
) admissionregistrationv1.WebhookClientConfig {
	service := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: ptr.To(port)}
	if path != "" {
		service.Path = ptr.To(path)
	}
	return admissionregistrationv1.WebhookClientConfig{Service: service, CABundle: bundle}
}

// ServiceHosts returns the names by which API servers and other clients in the cluster connect to a Service. API
// servers use the first one.
func ServiceHosts(namespace, name string) []string {
	whole := name + "." + namespace + ".svc"
	return []string{whole, whole + ".cluster.local", name + "." + namespace, name}
}

// Secret returns a random part of a path, different in each call. Tunnels are public, so requests without the secret
// must not reach the handlers.
func Secret() string {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // crypto/rand never returns an error
	return hex.EncodeToString(secret)
}
