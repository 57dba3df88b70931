"""The data behind a report's pictures: series of the library's own answers, without words and without drawing."""
