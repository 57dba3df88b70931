"""What SGLang decides from free memory, and what follows from it."""
