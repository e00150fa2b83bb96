// Package controller has the project's own reconcilers, level by level as controller-runtime has them. They are apart
// from the handlers of the facade and never call them: both work on the same objects, each on its own part of the
// status. Its neighbours: api/v1 has the types, cmd puts everything into one manager.
package controller
