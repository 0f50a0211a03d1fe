package docs

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"strings"
)

// markdown writes the content of a page as Markdown. It knows the elements of the templates in this folder, and
// leaves out the parts that only a browser can use.
func markdown(html template.HTML) string {
	var w markdownWriter
	d := xml.NewDecoder(strings.NewReader(string(html)))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(string(w.out)) + "\n"
		}
		check(err)
		switch t := token.(type) {
		case xml.StartElement:
			w.start(t)
		case xml.EndElement:
			w.end(t.Name.Local)
		case xml.CharData:
			w.text(string(t))
		}
	}
}

type markdownWriter struct {
	out []byte

	hidden   int    // open elements that are left out
	lists    int    // open lists
	cells    int    // in the row of the table
	pre      bool   // in a block of code, whose text stays as it is
	language string // of the program
	address  string // of the open link
}

// fences are the names of the languages in blocks of code.
var fences = map[string]string{"curl": "sh", "Shell": "sh", "JavaScript": "js", "Python": "python", "Go": "go"}

func (w *markdownWriter) start(e xml.StartElement) {
	attributes := map[string]string{}
	for _, a := range e.Attr {
		attributes[a.Name.Local] = a.Value
	}
	if name := e.Name.Local; w.hidden > 0 || name == "button" || name == "summary" || name == "svg" || attributes["class"] == "browser" {
		w.hidden++
		return
	}
	switch e.Name.Local {
	case "h2":
		w.block("## ")
	case "h3":
		w.block("### ")
	case "p":
		if w.lists == 0 {
			w.block("")
		} else {
			w.out = append(bytes.TrimRight(w.out, " "), ": "...)
		}
	case "div":
		w.language = attributes["data-language"]
	case "pre":
		w.block("```" + fences[w.language] + "\n")
		w.pre = true
	case "ul", "ol":
		if w.lists++; w.lists == 1 {
			w.block("")
		}
	case "li":
		w.line(strings.Repeat("  ", w.lists-1) + "- ")
	case "table":
		w.block("")
	case "tr":
		w.line("|")
		w.cells = 0
	case "th", "td":
		w.inline(" ")
		w.cells++
	case "a":
		w.address = attributes["href"]
		w.inline("[")
	case "code":
		if w.pre && attributes["class"] == "json" {
			w.out = append(bytes.TrimSuffix(w.out, []byte("\n")), "json\n"...)
		}
		w.inline("`")
	case "b":
		w.inline("**")
	case "br":
		w.inline(" ")
	}
}

func (w *markdownWriter) end(name string) {
	if w.hidden > 0 {
		w.hidden--
		return
	}
	switch name {
	case "pre":
		w.line("```")
		w.pre, w.language = false, ""
	case "ul", "ol":
		w.lists--
	case "th", "td":
		w.inline(" |")
	case "thead":
		w.line("|" + strings.Repeat("-|", w.cells))
	case "a":
		w.inline("](" + w.address + ")")
	case "code":
		w.inline("`")
	case "b":
		w.inline("**")
	}
}

// text writes text: unchanged in a block of code, elsewhere with single spaces.
func (w *markdownWriter) text(text string) {
	const space = " \t\n"
	switch {
	case w.hidden > 0:
	case w.pre:
		w.out = append(w.out, text...)
	default:
		if strings.TrimLeft(text, space) != text {
			w.inline(" ")
		}
		w.inline(strings.Join(strings.Fields(text), " "))
		if strings.TrimRight(text, space) != text {
			w.inline(" ")
		}
	}
}

// inline continues a line. In a block of code it writes nothing, because the text there has no marks. It leaves
// out a space after a space and at the beginning of a line.
func (w *markdownWriter) inline(text string) {
	if w.pre {
		return
	}
	if n := len(w.out); n == 0 || w.out[n-1] == ' ' || w.out[n-1] == '\n' {
		text = strings.TrimLeft(text, " ")
	}
	w.out = append(w.out, text...)
}

// line begins a line.
func (w *markdownWriter) line(text string) {
	if !w.pre {
		w.out = bytes.TrimRight(w.out, " ")
	}
	if n := len(w.out); n > 0 && w.out[n-1] != '\n' {
		w.out = append(w.out, '\n')
	}
	w.out = append(w.out, text...)
}

// block begins a line after an empty one.
func (w *markdownWriter) block(text string) {
	w.line("")
	w.out = append(append(w.out, '\n'), text...)
}
