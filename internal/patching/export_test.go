package patching

// TouchesList decides whether a patch needs the resource version as a guard.
var TouchesList = touchesList
