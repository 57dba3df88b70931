"""SGLang's default resolution: one file a subject, run in the engine's order by `resolver`."""
