"""What a command says."""
