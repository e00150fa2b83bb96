// Package tunnels is where the API server finds a webhook server: by a service in the cluster, by a URL outside of it,
// or through a tunnel.
//
// It is apart because the way from a cluster to a developer's machine depends on what the cluster is made of, and on
// nothing else here. It never serves anything, and knows neither handlers nor certificates.
//
// Neighbours: webhooks/configurations writes what comes out of here into the cluster; tunnelstest has a tunnel that
// goes nowhere far.
package tunnels
