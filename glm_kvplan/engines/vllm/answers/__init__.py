"""What each command answers for this engine, whole, and the page that shows it."""
