package serving

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// LivenessAddress is the parsed address of a liveness endpoint.
type LivenessAddress struct {
	// text is the URL as given, host the network address with the port.
	text, host, path string
}

// ParseLivenessAddress parses a URL such as http://0.0.0.0:8080/healthz. The default host is localhost, the default
// port 80.
func ParseLivenessAddress(text string) (*LivenessAddress, error) {
	location, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("no URL such as http://0.0.0.0:8080/healthz: %w", err)
	case location.Scheme != "http":
		return nil, fmt.Errorf(
			"%q: it must begin with http://, such as http://0.0.0.0:8080/healthz", text)
	case location.User != nil || location.RawQuery != "" || location.Fragment != "":
		return nil, fmt.Errorf("%q: it has more than a host, a port and a path", text)
	}
	host, port, path := location.Hostname(), location.Port(), location.Path
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "80"
	}
	if path == "" {
		path = "/"
	}
	// url.Parse accepts any digits as a port. Port 0 lets the system choose one.
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 && port != "0" {
		return nil, fmt.Errorf("%q: there is no port %s", text, port)
	}
	return &LivenessAddress{text: text, host: net.JoinHostPort(host, port), path: path}, nil
}

// String returns the URL as it was given.
func (a LivenessAddress) String() string { return a.text }
