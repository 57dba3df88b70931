"""SGLang: its flags, releases, memory components, sizing and boot log."""
