"""What people have, as words: shell scripts, manifests, files."""
