"""SQL over the data API, its rows as a stream."""
