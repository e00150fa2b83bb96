package planning

import "io"

// WriteText writes the report for users.
func (r *Report) WriteText(w io.Writer, most int) error { _, err := io.WriteString(w, ""); return err }
