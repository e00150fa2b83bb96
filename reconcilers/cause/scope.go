package cause

import "github.com/kopf-runtime/kopf-runtime/storage/diff"

// scope is what a set of paths means for one place in a tree: all of the place, or what is at the paths from there on.
// A path that leads through a list or a scalar means all of that: rather too much is hidden than too little.
type scope struct {
	all   bool
	paths []diff.Path
}

// within is the scope of the root.
func within(paths []diff.Path) scope { return scope{paths: paths}.settled() }

func (s scope) settled() scope {
	for _, path := range s.paths {
		if len(path) == 0 {
			return scope{all: true}
		}
	}
	return s
}

// nothing is true if neither the place nor anything in it is meant.
func (s scope) nothing() bool { return !s.all && len(s.paths) == 0 }

func (s scope) under(key string) scope {
	if s.all || len(s.paths) == 0 {
		return s
	}
	var inner scope
	for _, path := range s.paths {
		if path[0] == key {
			inner.paths = append(inner.paths, path[1:])
		}
	}
	return inner.settled()
}

func (s scope) into(path diff.Path) scope {
	for _, key := range path {
		s = s.under(key)
	}
	return s
}
