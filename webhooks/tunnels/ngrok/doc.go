// Package ngrok provides a tunnel through the ngrok service, for operators on machines that the cluster cannot reach.
// It needs an account of the service, and its token:
//
//	kopf.Settings{Admission: kopf.AdmissionSettings{Managed: "databases.example.org", Tunnel: ngrok.Tunnel{}}}
//
// It is a separate module, so that other programs do not depend on the SDK of ngrok. It does not decide which requests
// are served, and does not terminate TLS on this machine: the service does that at the public end.
//
// Package webhooks/tunnels defines the interface, and package kopf opens the tunnel.
package ngrok
