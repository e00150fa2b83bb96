package browser

import (
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
)

// pageErrors are the errors that a page has reported, in their order.
type pageErrors struct {
	mu       sync.Mutex
	messages []string
}

// listen gets every event of a tab, one after the other.
func (c *pageErrors) listen(event any) {
	var message string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		message = exception(e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			message = "console." + string(e.Type) + ": " + formatArgs(e.Args)
		}
	case *log.EventEntryAdded:
		// The browser requests an icon at some time; a missing icon is not an error of the page.
		if e.Entry.Level == log.EntryLevelError && !strings.HasSuffix(e.Entry.URL, "/favicon.ico") {
			message = strings.TrimSpace(e.Entry.Text + " " + e.Entry.URL)
		}
	}
	if message == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages = append(c.messages, message)
}

// takeAll gives the messages that were not taken yet.
func (c *pageErrors) takeAll() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.messages
	c.messages = nil
	return taken
}

// exception formats an exception with its stack; lines count from one, as in editors.
func exception(details *runtime.ExceptionDetails) string {
	text := details.Text
	if details.Exception != nil && details.Exception.Description != "" {
		text += " " + details.Exception.Description
	} else if details.Exception != nil {
		text += " " + string(details.Exception.Value)
	}
	return fmt.Sprintf("%s (%s:%d:%d)", text, details.URL, details.LineNumber+1, details.ColumnNumber+1)
}

// formatArgs is what the arguments of console.error look like.
func formatArgs(args []*runtime.RemoteObject) string {
	var words []string
	for _, arg := range args {
		if arg.Description != "" {
			words = append(words, arg.Description)
			continue
		}
		words = append(words, strings.Trim(string(arg.Value), `"`))
	}
	return strings.Join(words, " ")
}
