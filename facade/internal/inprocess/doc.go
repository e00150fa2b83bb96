// Not part of the public API.
//
// Package inprocess lets package facadetest answer admission reviews without a port or a certificate: the facade serves
// the handlers by a webhook server that is called directly, and reports which requests they are for.
//
// The context of an operator carries its [Webhooks], so the facade has no public name for them.
package inprocess
