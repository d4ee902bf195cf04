"""What policies for adaptive jobs work with: sizes and models to choose from, programs, and places on nodes."""
