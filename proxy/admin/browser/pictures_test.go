package browser

// pictures_test.go keeps pictures of the page, small enough for a repository.

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/chromedp"
)

// shoot sets the size of the window, and keeps a picture if PAGE_SHOTS names a directory.
func (v *viewer) shoot(name string, width, height int64) {
	v.t.Helper()
	v.run(resize(width, height))
	dir := os.Getenv("PAGE_SHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	v.run(chromedp.CaptureScreenshot(&picture))
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		v.t.Fatal(err)
	}
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, paletted(full, 256)); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), small.Bytes(), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

// paletted draws a picture in its most frequent colours.
func paletted(full image.Image, most int) *image.Paletted {
	bounds, count := full.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var palette color.Palette
	for _, c := range frequent[:min(len(frequent), most)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	drawn := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			drawn.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	return drawn
}
