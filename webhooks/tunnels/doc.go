// Package tunnels provides the address at which the API server finds a webhook server: a Service in the cluster, a URL
// outside of it, or a tunnel.
//
// [ByService] and [ByURL] return fixed addresses. A [Tunnel] reports its address while it runs. [Detecting] finds this
// machine from k3d, minikube or Docker Desktop, and package ngrok implements a public tunnel.
//
// The package does not serve webhooks, and does not depend on handlers or on the certificate of the webhook server.
// Package webhooks/configurations writes the addresses to the cluster. Package tunnelstest contains a local tunnel for
// tests.
package tunnels
