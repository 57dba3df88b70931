"""SGLang's memory, one file a kind."""
