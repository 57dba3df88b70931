"""What `kvplan check` asks of a start: expectations judged, and the smallest changes with which they hold."""
