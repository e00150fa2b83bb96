// Package certificates attacks the certificate of a webhook server: with foreign and damaged Secrets, another host, a
// clock that was ahead, a deleted Secret, and replicas that take turns. Its tests call the replicas as an API server
// does, by real TLS handshakes with the published bundle, and count refused requests.
//
// Everything is in memory and in virtual time. The parts have tests of their own in webhooks/certificates.
package certificates
