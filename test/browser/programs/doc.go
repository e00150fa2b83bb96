// Package programs finds or installs the programs for tests in a browser: Chromium from Debian's packages, axe-core,
// which judges accessibility, from the npm registry.
//
// It is apart from the kit because it uses the standard library alone, so that `make browser` compiles in a second.
// Only [InstallChromium] changes the machine. Its neighbours: package browser drives these programs, cmd/browser is the
// command line.
package programs
