"""Where runs are spread: this process, processes, Ray and Dask."""
