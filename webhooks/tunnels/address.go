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

// randomBytes are more than anybody can try.
const randomBytes = 16

// ports are those that a URL need not have.
var ports = map[string]int{"http": 80, "https": 443}

// URL is the address of a server. Addresses of IPv6 come without brackets.
func URL(scheme, host string, port int, path string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != ports[scheme] {
		host += ":" + strconv.Itoa(port)
	}
	if path != "" && !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return scheme + "://" + host + path
}

// Routable is where a server is found that listens at an address: one that stands for all of them is replaced by that
// of this machine for itself, and none at all by its name.
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

// ByURL is the client configuration of a server outside of the cluster.
func ByURL(url string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
}

// ByService is that of one behind a Service in the cluster; the path may be empty.
func ByService(
	namespace, name string, port int32, path string, bundle []byte,
) admissionregistrationv1.WebhookClientConfig {
	service := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: ptr.To(port)}
	if path != "" {
		service.Path = ptr.To(path)
	}
	return admissionregistrationv1.WebhookClientConfig{Service: service, CABundle: bundle}
}

// ServiceHosts are the names of a Service by which API servers connect to it, and others in the cluster.
func ServiceHosts(namespace, name string) []string {
	whole := name + "." + namespace + ".svc"
	return []string{whole, whole + ".cluster.local", name + "." + namespace, name}
}

// Secret is a part of a path that nobody can guess, new in every call: who finds the public end of a tunnel by chance
// gets no answer.
func Secret() string {
	secret := make([]byte, randomBytes)
	_, _ = rand.Read(secret) // it never fails
	return hex.EncodeToString(secret)
}
