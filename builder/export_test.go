package builder

// ForgetDerived makes the process forget what it has derived, as if it had just been started.
func ForgetDerived() {
	made.Lock()
	defer made.Unlock()
	made.parts = parts{}
}
