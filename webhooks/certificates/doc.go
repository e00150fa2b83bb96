// Not part of the public API.
//
// Package certificates is where the certificate of a webhook server comes from, and what its clients must know to trust
// it: files that somebody else renews, a pair in memory for development, or a Secret in which the replicas of an
// operator renew theirs together.
//
// It is apart because certificates have times of their own: they change while nothing else does, and must have been
// told to all clients before they are used. It never serves anything, and never writes a webhook configuration: it
// says what has changed.
//
// Neighbours: webhooks/internal/server serves with the certificates; webhooks/configurations writes the bundle to
// the cluster.
package certificates
