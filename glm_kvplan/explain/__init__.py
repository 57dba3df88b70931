"""Answers in words for one deployment: where everything lies, and the readings that go wrong most often."""
