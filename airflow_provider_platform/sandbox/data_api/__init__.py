"""The data API over the sample warehouse."""
