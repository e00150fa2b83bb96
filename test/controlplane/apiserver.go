package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

const (
	serviceRange = "10.0.0.0/24"
	serviceIP    = "10.0.0.1" // the first of the range is the API server's own
	portAttempts = 3
)

// startAPIServer runs kube-apiserver on a free port. Another program may take the port between the choice and the use,
// so that the choice is made again.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	if err := c.writeServerFiles(); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		c.url = "https://127.0.0.1:" + port
		if _, err := c.User(adminName, adminGroup); err != nil {
			return err
		}
		err = c.tryAPIServer(ctx, port)
		if err == nil || attempt == portAttempts || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		c.servers = c.servers[:len(c.servers)-1] // it has ended
	}
}

func (c *ControlPlane) tryAPIServer(ctx context.Context, port string) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	s, err := c.launch("kube-apiserver", c.apiServerFlags(port))
	if err != nil {
		return err
	}
	return c.await(ctx, s, func(ctx context.Context) error {
		// Being ready does not include the namespace that everybody begins with.
		return errors.Join(get(ctx, client, c.url+"/readyz"), get(ctx, client, c.url+"/api/v1/namespaces/default"))
	})
}

func (c *ControlPlane) apiServerFlags(port string) []string {
	flags := []string{
		"--etcd-servers=" + c.etcdURL(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + port,
		"--cert-dir=" + c.dir,
		"--tls-cert-file=" + c.file("apiserver.crt"),
		"--tls-private-key-file=" + c.file("apiserver.key"),
		"--client-ca-file=" + c.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file("serviceaccount.key"),
		"--service-account-signing-key-file=" + c.file("serviceaccount.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
	}
	if !c.options.ControllerManager {
		// No controller creates the default service accounts, so the plugin would reject every pod.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.AuditLog != "" {
		flags = append(flags, "--audit-policy-file="+c.file("audit.json"), "--audit-log-path="+c.options.AuditLog)
	}
	return append(flags, c.options.APIServerFlags...)
}

func (c *ControlPlane) writeServerFiles() error {
	credentials, err := c.ca.server()
	if err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	serviceAccounts, err := encodeKey(key)
	if err != nil {
		return err
	}
	policy, err := json.Marshal(auditPolicy(c.options.AuditLevel))
	if err != nil {
		return fmt.Errorf("encoding the audit policy: %w", err)
	}
	return errors.Join(
		save(c.file("ca.crt"), c.ca.pem()),
		save(c.file("apiserver.crt"), credentials.certificate),
		save(c.file("apiserver.key"), credentials.key),
		save(c.file("serviceaccount.key"), serviceAccounts),
		save(c.file("audit.json"), policy),
	)
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.dir, name) }

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
