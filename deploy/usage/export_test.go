package usage

import "context"

// Round reads all edges once. The last round stores what it has read.
func (c *Collector) Round(ctx context.Context, last bool) { c.round(ctx, last) }
