// Package figures keeps what was measured, and prints it as ratios between contenders.
//
// It is apart because it is pure: numbers in, text out. A ratio is taken within a round, where both contenders had
// the same machine, and only then over the rounds: its median, and the least and the greatest of them. Absolute
// figures are small print, as they tell more about the machine than about the contenders.
//
// Neighbours: package scenarios notes what it measures here.
package figures
