// Not part of the public API.
//
// Package clusterops has what the commands for people do in a cluster: [FreezeOrder] pauses or resumes operators,
// [FindObject] finds one object to pause it or to retry its handlers, and [ReadReplicas] shows how replicas share the
// objects.
//
// [Connect] returns a [Cluster], with which all such commands resolve kinds and list objects, also those of packages
// planning and draining. Each command runs once, so nothing is cached, and a request that has no effect is an error
// that says why. [WriteJSON] and [OneLine] are for their reports.
//
// Package commandline has the flags. The engine acts on the annotations of objects: see package internal/controls.
package clusterops
