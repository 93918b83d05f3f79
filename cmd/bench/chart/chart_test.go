package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	c := Chart{
		Title: "A < B & \"C\"", About: "about",
		Rows:   []Row{{Group: "a group", Name: "first", Note: "a note"}, {Name: "second", Ours: true}, {Name: "unknown"}, {Name: "infinite"}},
		Panels: []Panel{{Name: "p", Unit: "ms", Values: []float64{0, 5, math.NaN(), math.Inf(1)}}, {Name: "q", Unit: "s", Log: true, Values: []float64{0.02, 700, math.NaN(), math.Inf(1)}}},
		Foot:   "foot",
	}
	var texts []string
	width, height := 0.0, 0.0
	decoder := xml.NewDecoder(strings.NewReader(c.Draw()))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("no valid XML: %v", err)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, string(token))
		case xml.StartElement:
			at := make(map[string]float64)
			for _, a := range token.Attr {
				at[a.Name.Local], _ = strconv.ParseFloat(a.Value, 64) // others are 0
			}
			if token.Name.Local == "svg" {
				width, height = at["width"], at["height"]
			}
			if right := max(at["x"]+at["width"], at["x2"], at["cx"]); right > width {
				t.Errorf("%v ends right of the picture, at %v", token, right)
			}
			if bottom := max(at["y"]+at["height"], at["y2"], at["cy"]); bottom > height {
				t.Errorf("%v ends below the picture, at %v", token, bottom)
			}
		}
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{c.Title, "about", "a group", "first", "a note", "second", "foot", "p", "ms", "0.020", "700", "0.01", "1k", "–", "∞"} {
		if !strings.Contains(all, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}
