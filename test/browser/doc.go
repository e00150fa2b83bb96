// Package browser tests web pages in headless Chromium: with the keyboard, by pictures, and by the rules of
// accessibility.
//
// It is a module of its own, so that other modules do not depend on the browser driver. A test binary has one browser,
// which [Main] ends, and each page is a tab with cookies of its own. Whatever a page shows is the same on every Linux:
// fonts, language, time zone and preferences are given to the browser and not taken from the machine. An error that a
// page reports fails its test. Without Chromium, tests that open a page are skipped; with CI=true they fail.
//
// It never installs anything. Its neighbours: programs finds and gets Chromium and axe-core, cmd/browser does that for
// `make browser`.
package browser
