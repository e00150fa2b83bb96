// Package programs finds what tests in a browser need beside Go, and gets it if it can: Chromium from Debian's
// packages, axe-core, which judges accessibility, from the npm registry.
//
// It is apart from the kit because it uses the standard library alone, so that `make browser` compiles in a second.
// Only [InstallChromium] changes the machine. Its neighbours: package browser drives what is found here, cmd/browser
// is the command line.
package programs
