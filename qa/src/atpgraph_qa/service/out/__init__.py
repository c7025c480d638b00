"""What goes out and comes in: signatures, adapters, delivery."""
