// Package inprocess lets package facadetest answer admission reviews without a port or a certificate: the facade serves
// the handlers by a webhook server that is called directly, and reports which requests they are for.
//
// What an operator is given travels in the context that it is run with, so the facade has no public name for it.
package inprocess
