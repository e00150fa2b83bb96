package browser

import (
	"fmt"
	"image"
	"image/color"
)

// The tolerated differences between two pictures of the same page. Chromium 150 and 156 paint identical pictures with
// the same fonts; the tolerance allows for rounding by another version or processor.
const (
	// ToleratedShade is by how much of 255 red, green or blue of a pixel may differ, before the pixel counts.
	ToleratedShade = 32
	// ToleratedShare is the share of all pixels that may count: 10 of 1280 by 800. A digit that is another one has
	// more, even in small print.
	ToleratedShare = 1e-5
)

// Difference describes how two pictures differ.
type Difference struct {
	// Sizes are of both pictures, the stored one first. If they are not the same, nothing else is compared.
	Sizes [2]image.Point
	// Pixels is how many differ at all, Counted how many by more than [ToleratedShade], in the rectangle Within.
	Pixels, SignificantPixels int
	Bounds                    image.Rectangle
	// Picture is the actual one, pale, with pixels that count in red, and others that differ in orange.
	Picture image.Image
}

// Tolerable reports whether the pictures have the same size and few enough pixels count.
func (d Difference) Tolerable() bool {
	size := d.Sizes[0]
	return size == d.Sizes[1] && float64(d.SignificantPixels) <= ToleratedShare*float64(size.X*size.Y)
}

// String says what differs.
func (d Difference) String() string {
	if d.Sizes[0] != d.Sizes[1] {
		return fmt.Sprintf("its size is %v, and not %v", d.Sizes[1], d.Sizes[0])
	}
	all := d.Sizes[0].X * d.Sizes[0].Y
	return fmt.Sprintf("%d of %d pixels differ by more than %d of 255 within %v, %.0f may (%d differ at all)",
		d.SignificantPixels, all, ToleratedShade, d.Bounds, ToleratedShare*float64(all), d.Pixels)
}

// Compare compares two pictures pixel by pixel.
func Compare(stored, actual image.Image) Difference {
	from, to := stored.Bounds(), actual.Bounds()
	d := Difference{Sizes: [2]image.Point{from.Size(), to.Size()}, Picture: actual}
	if d.Sizes[0] != d.Sizes[1] {
		return d
	}
	shown := image.NewNRGBA(image.Rectangle{Max: to.Size()})
	d.Picture = shown
	for y := range to.Dy() {
		for x := range to.Dx() {
			pixel := actual.At(to.Min.X+x, to.Min.Y+y)
			switch by := shade(stored.At(from.Min.X+x, from.Min.Y+y), pixel); {
			case by > ToleratedShade:
				d.SignificantPixels++
				d.Pixels++
				d.Bounds = d.Bounds.Union(image.Rect(x, y, x+1, y+1))
				shown.Set(x, y, color.NRGBA{R: 0xd0, A: 0xff})
			case by > 0:
				d.Pixels++
				shown.Set(x, y, color.NRGBA{R: 0xff, G: 0xa0, A: 0xff})
			default:
				shown.Set(x, y, lightenColor(pixel))
			}
		}
	}
	return d
}

// shade is by how much of 255 two colours differ in the channel in which they differ most.
func shade(one, other color.Color) int {
	r1, g1, b1, a1 := one.RGBA()
	r2, g2, b2, a2 := other.RGBA()
	return max(channelDifference(r1, r2), channelDifference(g1, g2), channelDifference(b1, b2),
		channelDifference(a1, a2))
}

func channelDifference(one, other uint32) int { return int(max(one, other)-min(one, other)) >> 8 }

func lightenColor(c color.Color) color.Color {
	const white, share = 255, 4 // a quarter of the contrast is left
	gray, _ := color.GrayModel.Convert(c).(color.Gray)
	return color.Gray{Y: white - (white-gray.Y)/share}
}
