package memapi

// mostPages is how many unfinished lists are kept for clients that read them in parts.
const mostPages = 200

// LimitHistory keeps about the given number of changes for watches that resume. A watch from before, also one that
// runs but has not kept up, ends with the status 410, and its client lists again. By default everything is kept.
func (s *Server) LimitHistory(changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.historyLimit = changes
}

// trimHistory drops the older half of twice the limit, so that its costs are spread over many changes.
func (s *Server) trimHistory() {
	if s.historyLimit == 0 || len(s.history) < 2*s.historyLimit {
		return
	}
	dropped := len(s.history) - s.historyLimit
	s.compacted = s.history[dropped-1].version
	s.history = append([]event(nil), s.history[dropped:]...) // a copy, to release the rest
}

// keepPage stores the rest of a list. The oldest one goes if there are too many.
func (s *Server) keepPage(name string, rest page) {
	s.pages[name] = rest
	s.pageNames = append(s.pageNames, name)
	if len(s.pageNames) > mostPages {
		delete(s.pages, s.pageNames[0])
		s.pageNames = s.pageNames[1:]
	}
}
