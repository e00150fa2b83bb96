// Not part of the public API.
//
// Package children applies the objects that a handler declares for its object, and deletes the ones that the handler no
// longer declares. It uses server-side apply. [Keeper] is the entry point, and [Declaration] collects the children of
// one call of a handler. [Rules] are for children that are created once, run until they are done, or are never deleted.
//
// This package is the only one that writes objects which are not handled. It never writes or deletes an object without
// the mark of the parent: an owner reference, or a label with the parent's uid. The declared children are stored in
// annotations of the parent, one per handler (the records). A child is added to the record before it is applied, and
// removed from it after it is deleted. So after a crash, the record lists every child that may exist.
//
// Package hierarchies sets owner references and labels. Package owned watches children. Package facade calls this
// package for handlers, and makes it delete the children that owner references cannot hold.
package children
