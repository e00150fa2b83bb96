package handlers

// Label names the handler where each name is kept until the end of the process, as in metrics, profiles and names of
// spans. It has as many values as there are registrations, twice: how many sub-handlers there are, and under which ids,
// may be up to the object, so all of a registered handler, however deep, are "<id>/*".
func (h *Handler) Label() string {
	if h.Root != "" {
		return SubID(h.Root, "*")
	}
	return h.ID
}

// Kind is that of the object, and empty without any, as in activities. It is not read from requests for admission,
// which may have anything for it.
func (c *Call) Kind() string {
	switch {
	case c.Resource != nil:
		return c.Resource.Kind
	case c.Admission != nil || c.Cause == nil:
		return ""
	}
	return c.Cause.Object.String("kind")
}
