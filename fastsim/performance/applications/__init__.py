"""Applications: what training jobs really do, as measured or made up, whatever a scheduler believes."""
