package browser

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// keys are those that are known by more than their letter.
var keys = map[string]string{
	"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Backspace": kb.Backspace, "Delete": kb.Delete, "Space": " ",
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

var modifiers = map[string]chromedp.Modifier{
	"Shift": chromedp.ModifierShift, "Control": chromedp.ModifierCtrl, "Alt": chromedp.ModifierAlt,
	"Meta": chromedp.ModifierMeta,
}

// keyPress is one key with its modifiers, pressed and released.
func keyPress(name string) (chromedp.Action[chromedp.Void], error) {
	var held []chromedp.Modifier
	for {
		before, rest, more := strings.Cut(name, "+")
		modifier, known := modifiers[before]
		if !more || !known {
			break
		}
		held, name = append(held, modifier), rest
	}
	key, known := keys[name]
	if !known {
		if utf8.RuneCountInString(name) != 1 {
			return nil, fmt.Errorf("there is no key %q: a character, or Tab, Enter, ArrowDown and so on", name)
		}
		key = name
	}
	return chromedp.KeyEvent(key, chromedp.KeyModifiers(held...)), nil
}
