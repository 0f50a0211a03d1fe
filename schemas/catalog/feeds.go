package catalog

// Feed is a file of a published version for programs that send no key: calendars and feed readers.
// It is stored beside the variants and served unchanged, at the root.
type Feed struct {
	Path        string // of the request
	ContentType string
	Stored      string // the name under which its body is stored; no variant has that name
}

// Feeds lists the feeds, in documentation order. It must not be changed. A version from before a
// feed existed lacks it.
var Feeds = []Feed{
	{Path: "/calendar.ics", ContentType: "text/calendar; charset=utf-8", Stored: "feeds/calendar.ics"},
	{Path: "/changes.atom", ContentType: "application/atom+xml; charset=utf-8", Stored: "feeds/changes.atom"},
}

// Portraits is the folder of the drawn portraits, in the store and, below the root, in requests. An edge serves them
// without a key, like the feeds.
const Portraits = "portraits/"

// Portrait returns the name under which a driver's drawn portrait is stored. It is the path of the request without the
// first slash.
func Portrait(driverID string) string { return Portraits + driverID + ".svg" }
