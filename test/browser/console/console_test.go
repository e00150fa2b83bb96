package console_test

import (
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/reconcilers/journal"
	"github.com/kopf-runtime/kopf-runtime/test/browser"
)

const isLiveScript = "document.getElementById('connection').textContent === 'Live'"

// rowCountScript is how many objects are shown.
const rowCountScript = "document.querySelectorAll('#objects tbody tr').length"

func open(t *testing.T, w *harness, view browser.View) *browser.Page {
	t.Helper()
	p := browser.Open(t, w.url, view)
	p.Wait(isLiveScript)
	return p
}

// focusOn has the row of an object have the focus.
func focusOn(object string) string {
	return "[...document.querySelectorAll('#objects button')].find((b) => b.textContent === '" + object + "').focus()"
}

func text(p *browser.Page, selector string) (found string) {
	p.Read("document.querySelector('"+selector+"').textContent", &found)
	return found
}

// What the page looks like, by day and by night, and on a narrow window: with objects in all states.
func TestPictures(t *testing.T) {
	for name, view := range map[string]browser.View{
		"light": {Height: 1550}, "dark": {Height: 1550, PrefersDark: true}, "narrow": {Width: 480, Height: 900},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, newPopulatedHarness(t), view)
			p.Wait(rowCountScript + " === 11")
			p.CheckAccessibility()
			p.Screenshot(name)
		})
	}
}

// The explanation of an object, opened by the keyboard.
func TestExplanation(t *testing.T) {
	for name, view := range map[string]browser.View{"explained": {}, "explained-dark": {PrefersDark: true}} {
		t.Run(name, func(t *testing.T) {
			p := open(t, newPopulatedHarness(t), view)
			p.Wait(rowCountScript + " === 11")
			var focused bool
			p.Read(focusOn("shop/users"), &focused)
			p.Press("Enter")
			p.Wait("document.querySelectorAll('#answer tbody tr').length === 2")
			p.CheckAccessibility()
			p.Screenshot(name)
			p.Press("Escape")
			p.Wait("!document.getElementById('explanation').open")
			p.Wait("document.activeElement.textContent === 'shop/users'")
		})
	}
}

// TestStandings shows the first line of a paused operator, of an inactive one, and of one that waits for indices.
func TestStandings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*journal.OperatorState)
		want   string
	}{
		"paused": {func(s *journal.OperatorState) { s.Paused, s.Kinds = true, nil }, "Paused by a peer"},
		"idle":   {func(s *journal.OperatorState) { s.Running = false }, "Not active: it is starting or exiting"},
		"index":  {func(s *journal.OperatorState) { s.UnlistedResources = []string{"pods.v1"} }, "Waiting for indices"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEmptyHarness(t)
			standing := w.standing()
			c.change(&standing)
			w.operator.SetState(standing)
			p := open(t, w, browser.View{})
			p.Wait("document.getElementById('shown').textContent === '0 objects are known.'")
			if got := text(p, "#standing"); !strings.HasPrefix(got, c.want) {
				t.Errorf("it stands: %s", got)
			}
			p.CheckAccessibility()
			if name == "paused" {
				p.Screenshot(name)
			}
		})
	}
}

// The whole page by the keyboard alone: the skip link, the filters, an object, and back.
func TestKeyboard(t *testing.T) {
	w := newPopulatedHarness(t)
	p := open(t, w, browser.View{})
	p.Wait(rowCountScript + " === 11")
	focus := func(want string) {
		t.Helper()
		p.Wait("(document.activeElement.id || document.activeElement.textContent.trim()).startsWith(" + want + ")")
	}
	p.Press("Tab")
	focus("'Skip to the objects'")
	p.Press("Enter")
	focus("'objects-heading'")
	p.Press("Tab")
	focus("'kind'")
	p.Press("Tab")
	focus("'state'")
	p.Press("Tab")
	focus("'text'")
	p.Press("C", "A", "R", "T")
	p.Wait(rowCountScript + " === 1")
	if got := text(p, "#found"); got != "1 of 11 objects matches." {
		t.Errorf("the status text for screen readers is %q", got)
	}
	p.Press("Tab")
	focus("'clear'")
	p.Press("Tab", "Tab")
	focus("'shop/carts'")
	p.Press("Enter")
	focus("'explained'")
	p.Wait("document.querySelectorAll('#answer tbody tr').length === 3")
	p.Press("Tab")
	focus("'again'")
	p.Press("Tab")
	focus("'close'")
	p.Press("Enter")
	focus("'shop/carts'")
	p.Press("Shift+Tab", "Shift+Tab")
	focus("'clear'")
	p.Press("Enter")
	p.Wait(rowCountScript + " === 11")
}

// What happens is shown without being asked for; who stands on a row by the keyboard stays there.
func TestLive(t *testing.T) {
	w := newPopulatedHarness(t)
	p := open(t, w, browser.View{})
	p.Wait(rowCountScript + " === 11")
	var done bool
	p.Read(focusOn("shop/quiet"), &done)
	w.newStory("newest").RecordEvent("ADDED").RecordEvaluation("create", verdict{Handler: provision})
	w.newStory("quiet").RecordEvaluation("update", verdict{Handler: resize})
	p.Wait(rowCountScript + " === 12")
	p.Wait("document.activeElement.textContent === 'shop/quiet'")
	p.Wait("document.activeElement.closest('tr').cells[2].textContent === 'running'")
	standing := w.standing()
	standing.Paused = true
	w.operator.SetState(standing)
	p.Wait("document.getElementById('standing').textContent.startsWith('Paused')")
}

// A page whose operator has gone says so, and is live again when it is back.
func TestReconnect(t *testing.T) {
	w := newPopulatedHarness(t)
	p := open(t, w, browser.View{})
	p.Wait(rowCountScript + " === 11")
	address := w.server.Listener.Addr().String()
	end(w.server)
	p.Wait("document.getElementById('connection').textContent.startsWith('Disconnected')")
	p.CheckAccessibility()
	w.newStory("meanwhile").RecordEvent("ADDED")
	w.serve(t, address)
	p.Wait(isLiveScript)
	p.Wait(rowCountScript + " === 12")
	for _, message := range p.Errors() {
		if !strings.Contains(message, "net::ERR_") {
			t.Errorf("there is an error other than the failed connection: %s", message)
		}
	}
}

// Names and errors are text, whatever is in them.
func TestMarkupStaysText(t *testing.T) {
	w := newEmptyHarness(t)
	const name = `<img src=x onerror="document.title='owned'">`
	w.newStory(name).RecordEvaluation("create", verdict{Handler: provision})
	p := open(t, w, browser.View{})
	p.Wait(rowCountScript + " === 1")
	if got := text(p, "#objects tbody button"); got != "shop/"+name {
		t.Errorf("the name is shown as %q", got)
	}
	var focused bool
	p.Read("document.querySelector('#objects tbody button').focus()", &focused)
	p.Press("Enter")
	p.Wait("document.getElementById('answer').textContent.includes('Handlers')")
	var images int
	p.Read("document.images.length", &images)
	if title := text(p, "title"); images > 0 || title != "databases.example.org: operator" {
		t.Errorf("there are %d images, and the title is %q", images, title)
	}
}
