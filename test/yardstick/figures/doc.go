// Package figures stores measurements and prints them as ratios between contenders.
//
// It is separate because it is pure: numbers in, text out. A ratio compares two contenders within one round, on the
// same machine. Printed are the median, minimum and maximum over the rounds. Absolute figures come last, because they
// depend more on the machine than on the contenders.
//
// Neighbours: package scenarios stores its measurements here.
package figures
