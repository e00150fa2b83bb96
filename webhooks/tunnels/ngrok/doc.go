// Package ngrok is a tunnel through the service of that name, for operators on machines that the cluster cannot reach.
// It needs an account there, and its token:
//
//	kopf.Settings{Admission: kopf.AdmissionSettings{Managed: "databases.example.org", Tunnel: ngrok.Tunnel{}}}
//
// It is a module of its own, as it brings the official SDK of ngrok with it: whoever does not import it has none of
// that. It never decides what is served, and never ends TLS on this machine: at its public end, ngrok does.
//
// Neighbours: webhooks/tunnels says what a tunnel is; package facade opens it.
package ngrok
