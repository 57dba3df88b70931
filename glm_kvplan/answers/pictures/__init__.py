"""The numbers behind the charts."""
