package builder

// ForgetDerived makes the process forget what it has derived, as if it had just been started.
func ForgetDerived() {
	made.Lock()
	defer made.Unlock()
	made.parts = parts{}
}

// Remembered are the bodies by path that a builder has from what it rendered last.
func Remembered(b *Builder) map[string][]byte {
	bodies := map[string][]byte{}
	if last := b.last.Load(); last != nil {
		for path, r := range last.of {
			bodies[path] = r.body
		}
	}
	return bodies
}
