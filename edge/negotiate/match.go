package negotiate

// None and Any are results of [NoneMatch] that are not an index.
const (
	None = -1 // no tag of the list is among the given ones
	Any  = -2 // the header is "*"
)

// NoneMatch reads an If-None-Match header and returns the index of the first of tags, which include
// their quotes, that the header lists, in any order; or None, or Any. The comparison is weak: W/"x"
// matches "x". If the header lists none of them, "x-gzip" and the like match "x": a proxy that compressed
// the body with that tag has changed the tag. NoneMatch does not read past the first fault of the list.
func NoneMatch(header []byte, tags [][]byte) int {
	header = trim(header)
	if string(header) == "*" {
		return Any
	}
	found, changed := None, None
	for {
		for len(header) > 0 && (header[0] == ',' || header[0] == ' ' || header[0] == '\t') {
			header = header[1:]
		}
		tag, rest, ok := entityTag(header)
		if !ok {
			break
		}
		for i := range tags {
			if (found == None || i < found) && string(tag) == string(tags[i]) {
				found = i
			}
			if (changed == None || i < changed) && compressed(tag, tags[i]) {
				changed = i
			}
		}
		header = trim(rest)
		if len(header) > 0 && header[0] != ',' {
			break
		}
	}
	if found == None {
		return changed
	}
	return found
}

// compressed reports whether tag is own with the suffix of a proxy that compresses: Apache's modules, older releases of
// them, and Jetty.
func compressed(tag, own []byte) bool {
	stem := own[:len(own)-1] // without the quote at the end
	if len(tag) <= len(own) || string(tag[:len(stem)]) != string(stem) {
		return false
	}
	switch string(tag[len(stem) : len(tag)-1]) {
	case "-gzip", "-br", "-zstd", "-deflate", ";gzip", ";br", "--gzip":
		return true
	}
	return false
}

// entityTag cuts the first tag off a list and returns it with its quotes, without W/.
func entityTag(list []byte) (tag, rest []byte, ok bool) {
	if len(list) > 2 && list[0] == 'W' && list[1] == '/' {
		list = list[2:]
	}
	if len(list) == 0 || list[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			return list[:i+1], list[i+1:], true
		case c < 0x21 || c == 0x7f: // not an etagc
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// PrefersHTML reports whether an Accept header names text/html before any JSON type, as browsers
// do.
func PrefersHTML(accept []byte) bool {
	for len(accept) > 0 {
		var member []byte
		member, accept = cut(accept, ',')
		media, parameters := cut(member, ';')
		if q, ok := weight(parameters); !ok || q == 0 {
			continue
		}
		switch media = trim(media); {
		case EqualFold(media, "text/html"):
			return true
		case EqualFold(media, "application/json"):
			return false
		}
	}
	return false
}

// Lists reports whether a header field that is a list of words, such as Connection, names the
// word, which is in lower case, in any case.
func Lists(header []byte, word string) bool {
	for len(header) > 0 {
		var member []byte
		member, header = cut(header, ',')
		if EqualFold(trim(member), word) {
			return true
		}
	}
	return false
}
