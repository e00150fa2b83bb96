package memapi

// maxPages limits the stored remainders of paginated lists. Clients that abandon a list never release theirs.
const maxPages = 200

// LimitHistory keeps about the given number of changes for watches that resume. A watch that needs older changes ends
// with the status 410, also if it is running but too slow. Its client then lists again. By default, all changes are
// kept.
func (s *Server) LimitHistory(changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.historyLimit = changes
}

// trimHistory drops the older half once the history has twice the limit. Trimming at every change would copy the whole
// history each time.
func (s *Server) trimHistory() {
	if s.historyLimit == 0 || len(s.history) < 2*s.historyLimit {
		return
	}
	dropped := len(s.history) - s.historyLimit
	s.compactedVersion = s.history[dropped-1].version
	s.history = append([]event(nil), s.history[dropped:]...) // a copy, so that the dropped changes can be freed
}

// keepPage stores the rest of a paginated list under a name, and drops the oldest one if there are too many.
func (s *Server) keepPage(name string, rest page) {
	s.pages[name] = rest
	s.pageNames = append(s.pageNames, name)
	if len(s.pageNames) > maxPages {
		delete(s.pages, s.pageNames[0])
		s.pageNames = s.pageNames[1:]
	}
}
