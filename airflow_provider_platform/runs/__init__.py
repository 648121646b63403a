"""The kinds of runs at the service, each an object that operator and trigger share."""
