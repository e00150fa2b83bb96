// Not part of the public API.
//
// Package reviewing plays the part of the API server towards admission webhooks: it reads their configurations, decides
// which webhooks a request is for, and applies their verdicts. [Reviews] does so for the requests of an API server
// in memory. How a webhook is called is up to the caller: within the process, or by URL.
package reviewing
