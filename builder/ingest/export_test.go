package ingest

// Assembled counts the assemblies since the start. A poll without news adds none.
func (g *Ingest) Assembled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.assembled.times
}
