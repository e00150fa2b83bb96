// Not part of the public API.
//
// Package children makes the children that a handler declares for its object come true: they are applied by server-side
// apply, and what the handler had declared before, and declares no more, is deleted.
//
// It stands apart because it is the only place that writes objects which are not handled. It never touches an object
// that does not carry the mark of the parent: an owner reference or a label with its uid. What was declared is
// remembered in annotations of the parent, one for each handler, which are written before the first child that is not
// in them, and shrink after a child is gone: whenever the process dies, the next one knows all that there may be. A
// handler may declare bit by bit: its set is known, and compared with what it was, when its call has succeeded.
//
// Some children have rules: they are created once, made until they are done, or never deleted. See [Rules].
//
// Neighbours: package hierarchies has the owner references and labels; package facade calls it for handlers, and lets
// it release what owner references cannot hold.
package children
