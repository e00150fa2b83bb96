// Package storms reads how many random histories a test plays, and with which seed.
package storms
