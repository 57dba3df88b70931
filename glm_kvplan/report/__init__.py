"""Answers shown: in the terminal, as JSON, Markdown and HTML, as charts and as tables in files. No arithmetic."""
