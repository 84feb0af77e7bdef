// Charts as SVG, drawn from numbers alone. They follow the light or dark theme of the
// reader, load nothing and have no animation.

package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	chartWidth  = 860
	plotLeft    = 70.0
	plotTop     = 70.0
	plotWidth   = 520.0
	plotHeight  = 330.0
	labelHeight = 15.0 // between two labels at the ends of lines
	barHeight   = 20.0
	barLeft     = 290.0
)

// Colours of the series on a light and on a dark background, distinct on both.
var (
	onLight = []string{"#0969da", "#1a7f37", "#57606a", "#cf222e", "#bc4c00", "#8250df", "#bf3989", "#7d4e00"}
	onDark  = []string{"#4493f8", "#3fb950", "#b1bac4", "#ff7b72", "#ffa657", "#bc8cff", "#f778ba", "#d4a72c"}
)

// chartStyle follows the theme of the reader. It has the colours of each series in full:
// some viewers do not support variables.
func chartStyle() string {
	return `<style>
text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:16px;font-weight:600}.faint{fill:#59636e}
.ground{fill:#fff}.grid{stroke:#d1d9e0}path{stroke-width:2}
` + seriesStyle(onLight) + `@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.faint{fill:#9198a1}.ground{fill:#0d1117}.grid{stroke:#3d444d}
` + seriesStyle(onDark) + `}
</style>
`
}

func seriesStyle(colours []string) string {
	var b strings.Builder
	for i, c := range colours {
		fmt.Fprintf(&b, ".s%d,text.s%d{fill:%s}path.s%d{fill:none;stroke:%s}\n", i, i, c, i, c)
	}
	return b.String()
}

// series is one line of a chart: a value for each column, NaN for a missing one.
type series struct {
	name   string
	values []float64
}

// lineChart has columns at equal distances and a logarithmic axis.
type lineChart struct {
	title, axis string
	columns     []string
	lines       []series
}

func (c lineChart) svg() string {
	low, high := c.bounds()
	if low >= high {
		return ""
	}
	var b strings.Builder
	openSVG(&b, c.title, c.axis, plotTop+plotHeight+45)
	y := func(v float64) float64 {
		return plotTop + plotHeight*(math.Log10(high)-math.Log10(v))/(math.Log10(high)-math.Log10(low))
	}
	x := func(i int) float64 {
		return plotLeft + plotWidth*(float64(i)+0.5)/float64(len(c.columns))
	}
	for v := math.Pow(10, math.Ceil(math.Log10(low))); v <= high; v *= 10 {
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/>`, plotLeft, plotLeft+plotWidth, y(v), y(v))
		fmt.Fprintf(&b, `<text class="faint" text-anchor="end" x="%.0f" y="%.1f">%s</text>`+"\n", plotLeft-8, y(v)+4, thousands(v))
	}
	for i, name := range c.columns {
		fmt.Fprintf(&b, `<text class="faint" text-anchor="middle" x="%.1f" y="%.0f">%s</text>`+"\n", x(i), plotTop+plotHeight+22, escape(name))
	}
	c.draw(&b, x, y)
	b.WriteString("</svg>\n")
	return b.String()
}

// bounds returns limits with a little space around all values.
func (c lineChart) bounds() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range c.lines {
		for _, v := range s.values {
			if v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low / 1.5, high * 1.5
}

// ending is the end of a line, and the name beside it.
type ending struct {
	number int
	name   string
	y      float64
}

func (c lineChart) draw(b *strings.Builder, x func(int) float64, y func(float64) float64) {
	var ends []ending
	for number, s := range c.lines {
		path, last := "", -1
		for i, v := range s.values {
			if !(v > 0) {
				continue
			}
			step := "L"
			if last < 0 {
				step = "M"
			}
			path, last = path+fmt.Sprintf("%s%.1f %.1f", step, x(i), y(v)), i
			fmt.Fprintf(b, `<circle class="s%d" cx="%.1f" cy="%.1f" r="3"><title>%s, %s: %s</title></circle>`+"\n",
				number%len(onLight), x(i), y(v), escape(s.name), escape(c.columns[i]), show(v))
		}
		if last < 0 {
			continue
		}
		fmt.Fprintf(b, `<path class="s%d" d="%s"/>`+"\n", number%len(onLight), path)
		ends = append(ends, ending{number, s.name, y(s.values[last])})
	}
	slices.SortFunc(ends, func(a, b ending) int { return int(math.Copysign(1, a.y-b.y)) })
	for i, e := range ends {
		if i > 0 {
			e.y = max(e.y, ends[i-1].y+labelHeight) // names must not overlap
			ends[i] = e
		}
		fmt.Fprintf(b, `<text class="name s%d" x="%.0f" y="%.1f">%s</text>`+"\n", e.number%len(onLight), plotLeft+plotWidth+10, e.y+4, escape(e.name))
	}
}

// bar is one row of a bar chart, in parts.
type bar struct {
	name  string
	parts []float64
}

// barChart draws the parts of each bar side by side.
type barChart struct {
	title, axis string
	parts       []string
	bars        []bar
}

func (c barChart) svg() string {
	longest := 0.0
	for _, row := range c.bars {
		longest = max(longest, sum(row.parts))
	}
	if longest == 0 {
		return ""
	}
	var b strings.Builder
	openSVG(&b, c.title, c.axis, plotTop+float64(len(c.bars))*(barHeight+8)+20)
	left := barLeft
	for i, name := range c.parts {
		fmt.Fprintf(&b, `<rect class="bar s%d" x="%.0f" y="52" width="10" height="10"/><text x="%.0f" y="61">%s</text>`+"\n", i, left, left+15, escape(name))
		left += 120
	}
	scale := (chartWidth - barLeft - 90) / longest
	for i, row := range c.bars {
		y, from := plotTop+8+float64(i)*(barHeight+8), barLeft
		fmt.Fprintf(&b, `<text text-anchor="end" x="%.0f" y="%.1f">%s</text>`, barLeft-10, y+14, escape(row.name))
		for part, v := range row.parts {
			fmt.Fprintf(&b, `<rect class="bar s%d" x="%.1f" y="%.1f" width="%.1f" height="%.0f"><title>%s: %s</title></rect>`,
				part, from, y, v*scale, barHeight, escape(c.parts[part]), show(v))
			from += v * scale
		}
		fmt.Fprintf(&b, `<text class="faint" x="%.1f" y="%.1f">%s</text>`+"\n", from+8, y+14, show(sum(row.parts)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func openSVG(b *strings.Builder, title, axis string, height float64) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, escape(title))
	b.WriteString(chartStyle() + `<rect class="ground" width="100%" height="100%" rx="6"/>` + "\n")
	fmt.Fprintf(b, `<text class="title" x="20" y="26">%s</text><text class="faint" x="20" y="45">%s</text>`+"\n", escape(title), escape(axis))
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// thousands formats a power of ten.
func thousands(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0fk", v/1000)
	}
	return fmt.Sprintf("%g", v)
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}
