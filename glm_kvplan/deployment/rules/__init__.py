"""The engine's decisions about a launch, one module a theme; `deployment.resolve` calls them in the engine's order."""
