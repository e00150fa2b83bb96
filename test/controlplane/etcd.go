package controlplane

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
)

// startEtcd runs etcd behind a socket in the folder: no port that could be taken, no door for other users.
func (c *ControlPlane) startEtcd(ctx context.Context) error {
	s, err := c.launch("etcd", append([]string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--listen-client-urls=" + c.etcdURL(),
		"--advertise-client-urls=http://localhost:2379", // a required setting without a reader
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync", // the data do not outlive the process anyway
		"--log-level=warn",
	}, c.options.EtcdFlags...))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", c.etcdSocket())
		},
	}}
	return c.await(ctx, s, func(ctx context.Context) error { return get(ctx, client, "http://etcd/readyz") })
}

func (c *ControlPlane) etcdSocket() string { return filepath.Join(c.dir, "etcd.sock") }

func (c *ControlPlane) etcdURL() string { return "unix://" + c.etcdSocket() }
