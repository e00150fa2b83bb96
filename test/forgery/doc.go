// Package forgery writes malicious data into the stored progress of operators and measures the cost.
//
// It is apart because it asks one question of the whole runtime, through its public door: with anything in the
// annotations and in the status of one object, does that object alone pay for it, in bounded calls, requests and CPU,
// and does it still go when it is deleted? The forgeries are random, by seed; each run has an honest twin of the same
// sizes, which says what may be spent. It never sleeps for real.
//
// The peering object of a tenant is the other attack: it may pause the operator in the namespace of the tenant, for as
// long as the record says, and in no other one.
//
// Neighbours: facade/facadetest/memapi is the API server; test/explorer is about deaths and failures instead of malice.
package forgery
