// Not part of the public API.
//
// Package certificates provides the certificate of a webhook server, and the CA bundle by which its clients verify it.
//
// A [Source] comes from one of four constructors. [Files] reads files that another program renews. [SelfSignedSource] creates
// a certificate in memory, for development. [Rotation] keeps a certificate in a Secret, which the replicas of an
// operator renew together. [ForeignSource] provides only the bundle, because another component terminates TLS.
//
// A new certificate must be in the bundle of all clients before a server uses it. The package decides about that time,
// and reports each change of the bundle. It does not serve anything and does not write webhook configurations:
// webhooks/internal/server uses the certificates, and webhooks/configurations writes the bundle to the cluster.
package certificates
