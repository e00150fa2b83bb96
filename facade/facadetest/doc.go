// Package facadetest is the test kit.
package facadetest
