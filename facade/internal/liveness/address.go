package liveness

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// Address is where an endpoint is.
type Address struct {
	text, host, path string
}

// Parse reads an URL such as http://0.0.0.0:8080/healthz. Without a host it is localhost, without a port 80.
func Parse(text string) (Address, error) {
	location, err := url.Parse(text)
	switch {
	case err != nil:
		return Address{}, fmt.Errorf("no URL such as http://0.0.0.0:8080/healthz: %w", err)
	case location.Scheme != "http":
		return Address{}, fmt.Errorf("%q: it must begin with http://, such as http://0.0.0.0:8080/healthz", text)
	case location.User != nil || location.RawQuery != "" || location.Fragment != "":
		return Address{}, fmt.Errorf("%q: it has more than a host, a port and a path", text)
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
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 && port != "0" {
		return Address{}, fmt.Errorf("%q: there is no port %s", text, port)
	}
	return Address{text: text, host: net.JoinHostPort(host, port), path: path}, nil
}

// String is the URL as it was given.
func (a Address) String() string { return a.text }
