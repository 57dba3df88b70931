"""Answers as text, Markdown, HTML and JSON."""
