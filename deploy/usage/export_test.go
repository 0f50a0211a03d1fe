package usage

import "context"

// Round reads all edges once. The last round stores the readings.
func (c *Collector) Round(ctx context.Context, last bool) { c.round(ctx, last) }
